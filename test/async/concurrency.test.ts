import { threadMs } from '../../src/async/clock';
import { singleFlight, singleFlightBy, turns } from '../../src/async/concurrency';
import { refusedWith, deferred, until } from '../support/waiting';

const heldRuns = () => {
  const held: ReturnType<typeof deferred<string>>[] = [];
  const runs = singleFlight(() => {
    const run = deferred<string>();
    held.push(run);
    return run.promise;
  });
  return { runs, held };
};

describe('shared runs', () => {
  it('give all callers during a run the next one, together', async () => {
    const { runs, held } = heldRuns();
    const early = runs.since(threadMs());
    const late = [runs.since(threadMs()), runs.since(threadMs())];
    expect(held).toHaveLength(1);
    held[0]!.resolve('first');
    await until(() => held.length === 2);
    held[1]!.resolve('second');
    expect(await early).toBe('first');
    expect(await Promise.all(late)).toEqual(['second', 'second']);
    expect(held).toHaveLength(2);
  });

  it('never run twice at once for one name, also for a caller that comes between two runs', async () => {
    const held: ReturnType<typeof deferred<string>>[] = [];
    const runs = singleFlightBy(() => {
      const run = deferred<string>();
      held.push(run);
      return run.promise;
    });
    const first = runs.since('a', threadMs());
    const second = runs.since('a', threadMs());
    held[0]!.resolve('first');
    await first;
    const third = runs.since('a', 0);
    await until(() => held.length === 2);
    held[1]!.resolve('second');
    expect(await Promise.all([second, third])).toEqual(['second', 'second']);
    expect(held).toHaveLength(2);
  });

  it('pass a failure only to the callers of that run', async () => {
    let fails = true;
    const runs = singleFlight(async () => {
      if (fails) throw new Error('once');
      return 'well';
    });
    expect(await refusedWith(runs.since(threadMs()))).toBe('Error: once');
    fails = false;
    expect(await runs.since(threadMs())).toBe('well');
  });
});

it('a turn that ends goes to the one who waits, not also to the next who comes', async () => {
  const inTurn = turns(1);
  const begun: ReturnType<typeof deferred<void>>[] = [];
  const work = (): Promise<void> => {
    begun.push(deferred());
    return begun.at(-1)!.promise;
  };
  const first = inTurn(work);
  const second = inTurn(work);
  begun[0]!.resolve();
  await Promise.all([first, until(() => begun.length === 2)]);
  const third = inTurn(work);
  await new Promise(setImmediate);
  expect(begun).toHaveLength(2);
  begun[1]!.resolve();
  await Promise.all([second, until(() => begun.length === 3)]);
  begun[2]!.resolve();
  await third;
});
