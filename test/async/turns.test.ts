import { currentTurn, inLaterTurn } from '../../src/async/turns';

/** Blocks the thread. */
const work = (ms: number): void => {
  const end = performance.now() + ms;
  while (performance.now() < end);
};

const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n);

describe('turns of the event loop', () => {
  it('do not add up the work of all waiters, and start it in order', async () => {
    const done: number[] = [];
    const perTurn: number[] = [];
    let isOver = false;
    const look = (): void => {
      perTurn.push(done.length - perTurn.reduce((sum, count) => sum + count, 0));
      if (!isOver) setImmediate(look);
    };
    setImmediate(look);
    const one = (n: number): Promise<void> =>
      new Promise((resolve) => {
        const steps = async (): Promise<void> => {
          await Promise.resolve();
          work(2);
          await Promise.resolve();
          done.push(n);
          resolve();
        };
        inLaterTurn(() => void steps());
      });
    await Promise.all(numbers(150).map(one));
    isOver = true;
    look();
    expect(done).toEqual(numbers(150));
    expect(Math.max(...perTurn)).toBeLessThanOrEqual(3);
  });

  it('start nothing in the turn in which it is submitted', async () => {
    const turn = currentTurn();
    const later = await new Promise<number>((resolve) => inLaterTurn(() => resolve(currentTurn())));
    expect(later).toBeGreaterThan(turn);
  });

  it('are never shared with work submitted later', async () => {
    const seen: number[] = [];
    await new Promise<void>((resolve) => {
      inLaterTurn(() => {
        seen.push(currentTurn());
        inLaterTurn(() => {
          seen.push(currentTurn());
          resolve();
        });
      });
    });
    expect(seen[1]).toBeGreaterThan(seen[0]!);
  });

  it('start whoever waits first, however long other work takes in every turn', async () => {
    let [isOver, others] = [false, 0];
    const hold = (): void => {
      currentTurn();
      work(5);
      others += 1;
      if (!isOver) setImmediate(hold);
    };
    hold();
    const passedBy = await Promise.race([
      Promise.all(
        numbers(5).map(
          (n) =>
            new Promise<number>((resolve) => {
              const since = others;
              inLaterTurn(() => resolve(others - since - n));
            }),
        ),
      ),
      new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), 2_000)),
    ]);
    isOver = true;
    expect(passedBy).toHaveLength(5);
    expect(Math.max(...(passedBy ?? []))).toBeLessThanOrEqual(1);
  });

  it('end on their own', async () => {
    const turn = currentTurn();
    expect(currentTurn()).toBe(turn);
    await new Promise((resolve) => setImmediate(resolve));
    expect(currentTurn()).toBe(turn + 1);
  });
});
