import { announce, tail } from '../../src/event-log/sqlite/tail';

describe('a tail', () => {
  it('is woken by the appends of its thread to its log, until it is closed', async () => {
    const [watcher, other] = [tail('folder/../events.db', () => 1), tail('other.db', () => 1)];
    const woken = watcher.changedSince(watcher.seen());
    announce('events.db');
    await woken;
    expect([watcher.seen(), other.seen()]).toEqual([1, 0]);
    watcher.close();
    announce('events.db');
    expect(watcher.seen()).toBe(1);
    other.close();
  });

  it('wakes its waiters when the file cannot be read, so that they find the error', async () => {
    let broken = false;
    const watcher = tail('events.db', () => {
      if (broken) throw new Error('disk I/O error');
      return 1;
    });
    const woken = watcher.changedSince(watcher.seen());
    broken = true;
    await woken;
    expect(() => watcher.seen()).not.toThrow();
    watcher.close();
  });
});
