import { monotonicMs } from '../../src/async/clock';
import { streamQueue } from '../../src/ledger/stream-queue';
import { refusedWith, deferred } from '../support/waiting';

const soon = (): number => monotonicMs() + 10_000;

describe('the queue of a stream', () => {
  it('runs one task at a time, in order of arrival', async () => {
    const inTurn = streamQueue();
    const steps: string[] = [];
    const work = (name: string) => async () => {
      steps.push(`${name} begins`);
      await new Promise(setImmediate);
      steps.push(`${name} ends`);
      return name;
    };
    const names = ['a', 'b', 'c'];
    expect(await Promise.all(names.map((name) => inTurn('s', soon(), work(name))))).toEqual(names);
    expect(steps).toEqual(names.flatMap((name) => [`${name} begins`, `${name} ends`]));
  });

  it('does not hold up other streams', async () => {
    const inTurn = streamQueue();
    const held = deferred();
    const first = inTurn('one', soon(), () => held.promise);
    expect(await inTurn('other', soon(), async () => 'passed')).toBe('passed');
    held.resolve();
    await first;
  });

  it('continues after a failure', async () => {
    const inTurn = streamQueue();
    const failing = inTurn('s', soon(), () => Promise.reject(new Error('no')));
    const next = inTurn('s', soon(), async () => 'next');
    await expect(failing).rejects.toThrow('no');
    expect(await next).toBe('next');
  });

  it('refuses a task that waited too long, without running it', async () => {
    const inTurn = streamQueue();
    const held = deferred();
    const first = inTurn('s', soon(), () => held.promise);
    let done = false;
    const late = inTurn('s', monotonicMs() + 20, async () => {
      done = true;
    });
    expect(await refusedWith(late)).toBe('log_unavailable');
    held.resolve();
    await first;
    expect(await inTurn('s', soon(), async () => 'next')).toBe('next');
    expect(done).toBe(false);
  });

  it('runs nothing beside the current task, even if one in between has given up', async () => {
    const inTurn = streamQueue();
    const held = deferred();
    const steps: string[] = [];
    const first = inTurn('s', soon(), async () => {
      await held.promise;
      steps.push('first is done');
    });
    expect(await refusedWith(inTurn('s', monotonicMs() + 20, async () => undefined))).toBe('log_unavailable');
    const third = inTurn('s', soon(), async () => {
      steps.push('third is let in');
    });
    await new Promise(setImmediate);
    held.resolve();
    await Promise.all([first, third]);
    expect(steps).toEqual(['first is done', 'third is let in']);
  });
});
