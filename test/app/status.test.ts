import type { App } from '../../src/app/app';
import { checkBriefly, ledgerStatus } from '../../src/app/status';
import { freshFolder } from '../support/folders';
import { openAppIn } from '../support/profile';
import { operatorAt } from '../support/operator';

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

describe('the status under load', () => {
  it('shows no read model ahead of the head, though events came after the head was asked for', async () => {
    const folder = freshFolder();
    await operatorAt(folder).json('tenant create --name Acme');
    const app = await openAppIn(folder);
    try {
      const { log, projections } = await ledgerStatus({
        ...app,
        log: { ...app.log, head: async () => undefined },
      });
      expect(projections.length).toBeGreaterThan(0);
      for (const { position } of projections) expect(log.head).toBe(position);
    } finally {
      await app.close();
    }
  });
});
