import { tail } from '../../src/event-log/sqlite/tail';

describe('a tail', () => {
  it('watches this process from its first use until it is closed', async () => {
    const listeners = new Set<() => void>();
    const watcher = tail(
      () => 1,
      (wake) => {
        listeners.add(wake);
        return { close: () => void listeners.delete(wake) };
      },
    );
    expect(listeners.size).toBe(0);
    const woken = watcher.changedSince(watcher.seen());
    expect(watcher.seen()).toBe(0);
    expect(listeners.size).toBe(1);
    for (const wake of listeners) wake();
    await woken;
    expect(watcher.seen()).toBe(1);
    watcher.close();
    watcher.seen();
    expect(listeners.size).toBe(0);
  });

  it('wakes its waiters when the file cannot be read, so that they find the error', async () => {
    let broken = false;
    const watcher = tail(
      () => {
        if (broken) throw new Error('disk I/O error');
        return 1;
      },
      () => ({ close: () => undefined }),
    );
    const woken = watcher.changedSince(watcher.seen());
    broken = true;
    await woken;
    expect(() => watcher.seen()).not.toThrow();
    watcher.close();
  });
});
