import { tail } from '../../src/event-log/sqlite/tail';

describe('a tail', () => {
  it('wakes its sleepers when the file cannot be looked at: they find out what is wrong', async () => {
    let broken = false;
    const one = tail(() => {
      if (broken) throw new Error('disk I/O error');
      return 1;
    });
    const woken = one.newsSince(one.seen());
    broken = true;
    await woken;
    expect(() => one.seen()).not.toThrow();
    one.close();
  });
});
