import type { App } from '../../src/app/app';
import { checkBriefly } from '../../src/app/status';

describe('a time-limited check for unreadable tenants', () => {
  const asked: string[] = [];
  let go: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (go = resolve));
  const ledger = {
    unreadable: () => [],
    stateOf: async (tenantId: string) => {
      asked.push(tenantId);
      await held;
    },
  } as unknown as App['ledger'];

  it('does not wait for one that takes long, and does not start it again', async () => {
    const check = checkBriefly();
    await check(ledger, new Set(['a', 'b']));
    await check(ledger, new Set(['a', 'b']));
    expect(asked).toEqual(['a']);
    go();
    await check(ledger, new Set(['a', 'b']));
    expect(asked.slice(0, 2)).toEqual(['a', 'b']);
  });
});
