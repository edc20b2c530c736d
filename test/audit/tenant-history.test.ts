import { randomUUID } from 'node:crypto';
import * as entityFields from '../../src/audit/entity-fields';
import { eventViews } from '../../src/audit/event-views';
import { accessTo } from '../../src/audit/past-applications';
import { tenantAt, updateChanges, type HistoryEntry } from '../../src/audit/tenant-history';
import type { TenantEvent } from '../../src/domain/events';
import { decode } from '../../src/event-log/codec';
import type { LedgerLog } from '../../src/event-log/ledger-log';
import { freshFolder } from '../support/folders';
import { openLogIn } from '../support/log-under-test';

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

describe('the history of a tenant', () => {
  let ledgerLog: LedgerLog;
  const tenantId = randomUUID();
  beforeAll(async () => {
    ledgerLog = await openLogIn(freshFolder());
    const events = history.map(({ type, data }, day) => ({
      id: randomUUID(),
      type,
      data,
      metadata: { version: 1, actor: { type: 'user', id: OWNER }, traceId: `trace-${day}` },
      recordedAt: at(day + 1),
    }));
    await ledgerLog.log.append(ledgerLog.streams.tenant(tenantId), events, 'no_stream');
  });
  afterAll(() => ledgerLog.log.close());

  const on = (day: number) => tenantAt(ledgerLog, tenantId, { time: at(day) });

  it('compares states only for a caller who asks what changed', async () => {
    const compared = jest.spyOn(entityFields, 'changesBetween');
    await on(9);
    expect(compared).not.toHaveBeenCalled();
    await tenantAt(ledgerLog, tenantId, { time: at(9) }, () => undefined);
    expect(compared).toHaveBeenCalled();
    compared.mockRestore();
  });

  it('returns the state at a time: everything recorded up to it', async () => {
    const tenant = async (time: string) => (await tenantAt(ledgerLog, tenantId, { time })).tenant;
    expect(await tenant('2023-12-31T23:59:59.999Z')).toEqual({ status: 'absent' });
    expect(await tenant(at(1))).toMatchObject({ status: 'active', name: 'One' });
    expect(await tenant('2024-01-04T23:59:59.999Z')).toMatchObject({ name: 'One' });
    expect(await tenant(at(5))).toMatchObject({ name: 'Two' });
    expect(await tenant(at(8))).toMatchObject({ status: 'deleted' });
    expect((await tenantAt(ledgerLog, tenantId)).tenant).toMatchObject({ status: 'deleted' });
  });

  it('returns the state at a position, including that event', async () => {
    const entries: HistoryEntry[] = [];
    await tenantAt(ledgerLog, tenantId, undefined, (entry) => entries.push(entry));
    const renamed = entries.find(({ type }) => type === 'TenantUpdated');
    expect(await tenantAt(ledgerLog, tenantId, { position: renamed?.position ?? '' })).toMatchObject({
      tenant: { name: 'Two' },
      time: renamed?.at,
    });
  });

  it('lists every change with its author, its time, and what an update replaced', async () => {
    const entries: HistoryEntry[] = [];
    await tenantAt(ledgerLog, tenantId, { time: at(6) }, (entry) => entries.push(entry));
    expect(entries.map(({ type }) => type)).toEqual(history.slice(0, 6).map(({ type }) => type));
    expect(entries[4]).toMatchObject({
      at: at(5),
      actor: { type: 'user', id: OWNER },
      trace_id: 'trace-4',
      entity_type: 'tenant',
      entity_id: tenantId,
      operation: 'update',
      changes: [
        { field: 'name', from: 'One', to: 'Two' },
        { field: 'settings.fingerprint_tokens', from: false, to: true },
      ],
    });
    expect(entries[5]?.changes).toEqual([
      { field: 'permissions', from: ['token:create', 'tenant:read'], to: ['token:create'] },
    ]);
    expect(JSON.stringify(entries)).not.toContain('aaaaaaaaa');
  });

  it('compares two moments, entity by entity', async () => {
    expect(entityFields.differencesBetween((await on(5)).tenant, (await on(5)).tenant)).toEqual([]);
    expect(entityFields.differencesBetween((await on(3)).tenant, (await on(7)).tenant)).toEqual([
      {
        entity: `tenant ${tenantId}`,
        changes: [
          { field: 'name', from: 'One', to: 'Two' },
          { field: 'settings.fingerprint_tokens', from: false, to: true },
        ],
      },
      {
        entity: `application ${APPLICATION}`,
        changes: [{ field: 'permissions', from: ['token:create', 'tenant:read'], to: ['token:create'] }],
      },
      {
        entity: `key ${OTHER_KEY}`,
        changes: [
          { field: 'application_id', from: null, to: APPLICATION },
          { field: 'revoked', from: null, to: true },
        ],
      },
    ]);
  });

  it('tells who could do what: keys that were neither revoked nor expired, permissions that the type may hold', async () => {
    const keysOn = async (day: number) =>
      accessTo(await on(day)).flatMap(({ keys }) => keys.map(({ id }) => id));
    expect(accessTo(await on(4))).toEqual([
      {
        application_id: APPLICATION,
        name: 'App',
        type: 'public',
        permissions: ['token:create'],
        keys: [{ id: KEY, expires_at: at(6) }, { id: OTHER_KEY }],
      },
    ]);
    expect(await keysOn(2)).toEqual([]);
    expect(await keysOn(3)).toEqual([KEY]);
    expect(await keysOn(6)).toEqual([OTHER_KEY]);
    expect(await keysOn(7)).toEqual([]);
    expect(accessTo(await on(8))).toEqual([]);
  });

  it('finds what updates changed, even if reading starts in the middle', async () => {
    const changesOf = updateChanges(ledgerLog);
    const changed: Record<string, string[]> = {
      ApplicationPermissionsSet: ['permissions'],
      KeyRevoked: ['revoked'],
      TenantDeleted: ['status'],
    };
    for await (const batch of ledgerLog.log.readStream(ledgerLog.streams.tenant(tenantId), 4))
      for (const logged of batch) {
        const decoded = decode(logged, ledgerLog.streams);
        if (decoded.status !== 'good' || decoded.kind !== 'tenant') throw new Error('unexpected');
        const fields = (await changesOf(decoded.event)).map(({ field }) => field);
        expect(fields).toEqual(changed[logged.type] ?? []);
      }
  });
});

describe('the access to a tenant at a position of its activity', () => {
  it('is that at the time of the event there: keys expire without an event of their own', async () => {
    const { log, streams } = await openLogIn(freshFolder());
    const tenantId = randomUUID();
    const stored = (type: string, data: object, day: number) => ({
      id: randomUUID(),
      type,
      data: { ...data },
      metadata: { version: 1 },
      recordedAt: at(day),
    });
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
      positions.map(async (position) => {
        const then = await tenantAt({ log, streams }, tenantId, { position });
        return [then.time, accessTo(then).flatMap(({ keys }) => keys.map(({ id }) => id))];
      }),
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

describe('an event that is impossible in its place', () => {
  const unknown = { applicationId: randomUUID(), name: 'Renamed' };
  const renamed: TenantEvent = { type: 'TenantUpdated', data: { name: 'Two', settings } };
  const impossible: readonly (readonly [string, readonly TenantEvent[]])[] = [
    ['the renaming of an unknown Application', [{ type: 'ApplicationRenamed', data: unknown }]],
    ['an update of a deleted tenant', [{ type: 'TenantDeleted', data: {} }, renamed]],
  ];

  it.each(impossible)('%s is shown without changes, as is what follows it', async (_, events) => {
    const { log, streams } = await openLogIn(freshFolder());
    const tenantId = randomUUID();
    const stored = [...history.slice(0, 1), ...events, renamed].map(({ type, data }) => ({
      id: randomUUID(),
      type,
      data,
      metadata: { version: 1 },
    }));
    await log.append(streams.tenant(tenantId), stored, 'no_stream');
    const viewOf = eventViews({ log, streams });
    const views: { readonly id: string; readonly changes: unknown }[] = [];
    for await (const batch of log.readStream(streams.tenant(tenantId)))
      for (const logged of batch) views.push(await viewOf(logged));
    expect(views.map(({ id }) => id)).toEqual(stored.map(({ id }) => id));
    expect(views.slice(-2).map(({ changes }) => changes)).toEqual([[], []]);
    const reading = tenantAt({ log, streams }, tenantId, undefined, () => undefined);
    await expect(reading).rejects.toMatchObject({
      code: 'tenant_unreadable',
      more: { event_id: stored.at(-2)?.id },
    });
    await log.close();
  });
});
