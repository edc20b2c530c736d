import { condition } from '../../src/async/condition';

describe('a signal', () => {
  it('wakes all waiters, once', async () => {
    const changed = condition();
    const woken: string[] = [];
    const waiting = ['a', 'b'].map((name) => changed.wait().then(() => woken.push(name)));
    changed.notify();
    await Promise.all(waiting);
    expect(woken).toEqual(['a', 'b']);
  });

  it('does not wake a waiter that starts waiting while it wakes the others', async () => {
    const changed = condition();
    let again = false;
    const waiting = changed
      .wait()
      .then(() => void changed.wait({ withinMs: 5_000 }).then(() => (again = true)));
    changed.notify();
    await waiting;
    await new Promise((resolve) => setImmediate(resolve));
    expect(again).toBe(false);
    changed.notify();
    await new Promise((resolve) => setImmediate(resolve));
    expect(again).toBe(true);
  });

  it('wakes on a timeout', async () => {
    await condition().wait({ withinMs: 1 });
  });

  it('wakes when the wait is aborted, and at once if it was aborted before', async () => {
    const ending = new AbortController();
    const waiting = condition().wait({ abort: ending.signal });
    ending.abort();
    await waiting;
    await condition().wait({ abort: ending.signal });
  });
});
