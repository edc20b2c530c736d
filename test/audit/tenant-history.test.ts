import { randomUUID } from 'node:crypto';
import { applicationsAt } from '../../src/audit/past-applications';
import { tenantAt, type Moment } from '../../src/audit/tenant-history';
import type { TenantEvent } from '../../src/domain/events';
import type { LedgerLog } from '../../src/event-log/ledger-log';
import { eventsOf } from '../support/events';
import { freshFolder } from '../support/folders';
import { openLogIn } from '../support/profile';

const [APPLICATION, KEY, OTHER_KEY, OWNER] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
const settings = { fingerprintTokens: false, deduplicateTokens: false };
const at = (day: number): string => `2024-01-${String(day).padStart(2, '0')}T00:00:00.000Z`;

/** One event a day, from January 1, 2024. */
const history: readonly TenantEvent[] = [
  { type: 'TenantCreated', data: { name: 'One', ownerId: OWNER, settings, includedMonthlyActiveTokens: 0 } },
  {
    type: 'ApplicationCreated',
    data: {
      applicationId: APPLICATION,
      name: 'App',
      applicationType: 'public',
      permissions: ['token:create', 'tenant:read'],
    },
  },
  {
    type: 'KeyAdded',
    data: { keyId: KEY, applicationId: APPLICATION, digest: 'a'.repeat(64), expiresAt: at(6) },
  },
  { type: 'KeyAdded', data: { keyId: OTHER_KEY, applicationId: APPLICATION, digest: 'b'.repeat(64) } },
  { type: 'TenantUpdated', data: { name: 'Two', settings: { ...settings, fingerprintTokens: true } } },
  { type: 'ApplicationPermissionsSet', data: { applicationId: APPLICATION, permissions: ['token:create'] } },
  { type: 'KeyRevoked', data: { keyId: OTHER_KEY, applicationId: APPLICATION } },
  { type: 'TenantDeleted', data: {} },
];

const stored = (type: string, data: object, day: number) => ({
  id: randomUUID(),
  type,
  data: { ...data },
  metadata: { version: 1 },
  recordedAt: at(day),
});

const idsOfKeys = async (
  ledgerLog: LedgerLog,
  tenantId: string,
  moment: Moment,
): Promise<readonly string[]> => {
  const { applications } = await applicationsAt(ledgerLog, tenantId, {
    moment,
    filter: {},
    skip: 0,
    size: 10,
  });
  return applications.flatMap(({ keys }) => keys.map(({ id }) => id));
};

describe('a tenant as of a moment', () => {
  let ledgerLog: LedgerLog;
  const tenantId = randomUUID();
  beforeAll(async () => {
    ledgerLog = await openLogIn(freshFolder());
    const events = history.map(({ type, data }, day) => stored(type, data, day + 1));
    await ledgerLog.log.append(ledgerLog.streams.tenant(tenantId), events, 'no_stream');
  });
  afterAll(() => ledgerLog.log.close());

  it('has everything recorded up to a time', async () => {
    const tenant = async (time: string) => (await tenantAt(ledgerLog, tenantId, { time })).tenant;
    expect(await tenant('2023-12-31T23:59:59.999Z')).toEqual({ status: 'absent' });
    expect(await tenant(at(1))).toMatchObject({ status: 'active', name: 'One' });
    expect(await tenant('2024-01-04T23:59:59.999Z')).toMatchObject({ name: 'One' });
    expect(await tenant(at(5))).toMatchObject({ name: 'Two' });
    expect(await tenant(at(8))).toMatchObject({ status: 'deleted' });
  });

  it('has the event at a position', async () => {
    const events = await eventsOf(ledgerLog.log.readStream(ledgerLog.streams.tenant(tenantId)));
    const { position = '' } = events.find(({ type }) => type === 'TenantUpdated') ?? {};
    expect(await tenantAt(ledgerLog, tenantId, { position })).toMatchObject({
      tenant: { name: 'Two' },
      time: at(5),
    });
  });

  it('has the keys that were neither revoked nor expired then', async () => {
    const keysOn = (day: number) => idsOfKeys(ledgerLog, tenantId, { time: at(day) });
    expect(await keysOn(2)).toEqual([]);
    expect(await keysOn(3)).toEqual([KEY]);
    expect(await keysOn(4)).toEqual([KEY, OTHER_KEY]);
    expect(await keysOn(6)).toEqual([OTHER_KEY]);
    expect(await keysOn(7)).toEqual([]);
    expect(await keysOn(8)).toEqual([]);
  });
});

describe('the access to a tenant at a position of its activity', () => {
  it('is that at the time of the event there: keys expire without an event of their own', async () => {
    const { log, streams } = await openLogIn(freshFolder());
    const tenantId = randomUUID();
    const own = history.slice(0, 3).map(({ type, data }, day) => stored(type, data, day + 1));
    const { position: ownEnd } = await log.append(streams.tenant(tenantId), own, 'no_stream');
    const used = { entityType: 'card', operation: 'use', entityId: '1' };
    const positions = [ownEnd];
    for (const [revision, day] of [5, 6, 7].entries()) {
      const events = [stored('ActivityReported', used, day)];
      const stream = streams.activity(tenantId);
      positions.push(
        (await log.append(stream, events, revision === 0 ? 'no_stream' : revision - 1)).position,
      );
    }
    const others = [stored('ActivityReported', used, 20)];
    positions.push((await log.append(streams.activity(randomUUID()), others, 'no_stream')).position);
    const seen = await Promise.all(
      positions.map(async (position) => [
        (await tenantAt({ log, streams }, tenantId, { position })).time,
        await idsOfKeys({ log, streams }, tenantId, { position }),
      ]),
    );
    const [valid, expired] = [[KEY], []];
    expect(seen).toEqual([
      [at(3), valid],
      [at(5), valid],
      [at(6), expired],
      [at(7), expired],
      [at(7), expired],
    ]);
    await log.close();
  });
});

it('a tenant as of a moment after an event that is impossible in its place cannot be read', async () => {
  const { log, streams } = await openLogIn(freshFolder());
  const tenantId = randomUUID();
  const renamed = { applicationId: randomUUID(), name: 'Renamed' };
  const events = [...history.slice(0, 1), { type: 'ApplicationRenamed', data: renamed }].map(
    ({ type, data }, day) => stored(type, data, day + 1),
  );
  await log.append(streams.tenant(tenantId), events, 'no_stream');
  await expect(tenantAt({ log, streams }, tenantId, { time: at(9) })).rejects.toMatchObject({
    code: 'tenant_unreadable',
    more: { event_id: events[1]?.id },
  });
  await log.close();
});
