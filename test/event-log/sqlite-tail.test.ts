import { tail } from '../../src/event-log/sqlite/tail';

describe('a tail', () => {
  it('is woken by a change, until it is closed', async () => {
    let version = 1;
    const watcher = tail(() => version);
    const woken = watcher.changedSince(watcher.seen());
    version = 2;
    await woken;
    expect(watcher.seen()).toBe(1);
    watcher.close();
    version = 3;
    expect(watcher.seen()).toBe(1);
  });

  it('wakes its waiters when the file cannot be read, so that they find the error', async () => {
    let broken = false;
    const watcher = tail(() => (broken ? undefined : 1));
    const woken = watcher.changedSince(watcher.seen());
    broken = true;
    await woken;
    watcher.close();
  });
});
