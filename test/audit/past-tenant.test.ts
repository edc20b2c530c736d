import { randomUUID } from 'node:crypto';
import { applicationsAt, tenantAt } from '../../src/audit/past-tenant';
import type { TenantEvent } from '../../src/domain/events';
import type { LedgerLog } from '../../src/event-log/ledger-log';
import { freshFolder } from '../support/folders';
import { openLogIn } from '../support/profile';

const [APPLICATION, KEY, OTHER_KEY, OWNER] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
const settings = { fingerprintTokens: false, deduplicateTokens: false };
const at = (day: number): string => `2024-01-${String(day).padStart(2, '0')}T00:00:00.000Z`;

/** One event a day, from January 1, 2024. The last one is impossible in its place. */
const history: readonly TenantEvent[] = [
  { type: 'TenantCreated', data: { name: 'One', ownerId: OWNER, settings, includedMonthlyActiveTokens: 0 } },
  {
    type: 'ApplicationCreated',
    data: { applicationId: APPLICATION, name: 'App', applicationType: 'public', permissions: [] },
  },
  {
    type: 'KeyAdded',
    data: { keyId: KEY, applicationId: APPLICATION, digest: 'a'.repeat(64), expiresAt: at(6) },
  },
  { type: 'KeyAdded', data: { keyId: OTHER_KEY, applicationId: APPLICATION, digest: 'b'.repeat(64) } },
  { type: 'TenantUpdated', data: { name: 'Two', settings } },
  { type: 'KeyRevoked', data: { keyId: OTHER_KEY, applicationId: APPLICATION } },
  { type: 'TenantDeleted', data: {} },
  { type: 'TenantUpdated', data: { name: 'Three', settings } },
];

describe('a tenant as of a time', () => {
  let ledgerLog: LedgerLog;
  const tenantId = randomUUID();
  const events = history.map(({ type, data }, day) => ({
    id: randomUUID(),
    type,
    data,
    metadata: { version: 1 },
    recordedAt: at(day + 1),
  }));
  beforeAll(async () => {
    ledgerLog = await openLogIn(freshFolder());
    await ledgerLog.log.append(ledgerLog.streams.tenant(tenantId), events, 'no_stream');
  });
  afterAll(() => ledgerLog.log.close());

  it('has everything recorded up to it', async () => {
    const tenant = (time: string) => tenantAt(ledgerLog, tenantId, { time });
    expect(await tenant('2023-12-31T23:59:59.999Z')).toEqual({ status: 'absent' });
    expect(await tenant(at(1))).toMatchObject({ status: 'active', name: 'One' });
    expect(await tenant('2024-01-04T23:59:59.999Z')).toMatchObject({ name: 'One' });
    expect(await tenant(at(5))).toMatchObject({ name: 'Two' });
    expect(await tenant(at(7))).toMatchObject({ status: 'deleted' });
    await expect(tenant(at(8))).rejects.toMatchObject({
      code: 'tenant_unreadable',
      more: { event_id: events.at(-1)?.id },
    });
  });

  it('has the keys that were neither revoked nor expired then, and none once it is deleted', async () => {
    const keysOn = async (day: number) => {
      const question = { moment: { time: at(day) }, filter: {}, skip: 0, size: 10 };
      const { applications } = await applicationsAt(ledgerLog, tenantId, question);
      return applications.flatMap(({ keys }) => keys.map(({ id }) => id));
    };
    const days = await Promise.all([2, 3, 4, 5, 6, 7].map(keysOn));
    expect(days).toEqual([[], [KEY], [KEY, OTHER_KEY], [KEY, OTHER_KEY], [], []]);
  });
});
