import { turns } from '../src/turns';

const TURN_MS = 5;

/** Holds the thread. */
const work = (ms: number): void => {
  const end = performance.now() + ms;
  while (performance.now() < end);
};

describe('turns of the event loop', () => {
  it('do not add up the work of all who wait', async () => {
    const { next } = turns(TURN_MS);
    const done: number[] = [];
    const perTurn: number[] = [];
    const look = (): void => {
      perTurn.push(done.length - perTurn.reduce((sum, count) => sum + count, 0));
      if (done.length < 50) setImmediate(look);
    };
    setImmediate(look);
    const one = async (n: number): Promise<void> => {
      await next();
      await Promise.resolve();
      work(2);
      await Promise.resolve();
      done.push(n);
    };
    await Promise.all(Array.from({ length: 50 }, (_, n) => one(n)));
    look();
    expect(done).toEqual(Array.from({ length: 50 }, (_, n) => n));
    expect(Math.max(...perTurn)).toBeLessThanOrEqual(4);
  });

  it('take what comes at once while there is time, and the rest in order', async () => {
    const { take } = turns(TURN_MS);
    const done: number[] = [];
    const all = new Promise<void>((resolve) => {
      for (let n = 0; n < 20; n += 1)
        take(() => {
          work(2);
          done.push(n);
          if (n === 19) resolve();
        });
    });
    expect(done.length).toBeGreaterThan(0);
    expect(done.length).toBeLessThan(10);
    await all;
    expect(done).toEqual(Array.from({ length: 20 }, (_, n) => n));
  });

  it('are counted', async () => {
    const { next, count } = turns(Infinity);
    await Promise.all([next(), next(), next()]);
    expect(count()).toBe(1);
    await next();
    expect(count()).toBe(2);
  });

  it('go on with everybody, also when work fails', async () => {
    const { next } = turns(0.001);
    const failing = async (n: number): Promise<number> => {
      await next();
      if (n % 2 === 0) throw new Error('failed');
      return n;
    };
    const outcomes = await Promise.allSettled(Array.from({ length: 9 }, (_, n) => failing(n)));
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(5);
  });
});
