import { randomUUID } from 'node:crypto';
import { decode, encode, operatorEventOf } from '../../src/event-log/codec';
import type { LoggedEvent } from '../../src/event-log/event-log';
import { streamNames } from '../../src/event-log/streams';

const tenantId = '7f7a2c0e-6a4f-4d39-9f3c-0d5a1c2b3e4f';
const streams = streamNames();

const logged = (more: Partial<LoggedEvent> = {}): LoggedEvent => ({
  id: randomUUID(),
  type: 'TenantPlanChanged',
  data: { includedMonthlyActiveTokens: 5 },
  metadata: {},
  stream: streams.tenant(tenantId),
  revision: 3,
  position: '0000000000000009',
  recordedAt: '2026-05-05T05:05:05.005Z',
  ...more,
});

const keyAdded = (more: Record<string, unknown>): Partial<LoggedEvent> => ({
  type: 'KeyAdded',
  data: { keyId: tenantId, applicationId: tenantId, digest: 'a'.repeat(64), ...more },
});

describe('a logged event', () => {
  it('is valid with all its metadata', () => {
    const actor = { type: 'user', id: randomUUID(), osUser: 'ann' };
    const idempotency = { key: 'k', scope: 'PUT /x', hash: 'h' };
    const metadata = { version: 1, at: '2026-01-02T03:04:05+02:00', traceId: 't', actor, idempotency };
    const event = logged({ metadata });
    expect(decode(event, streams)).toEqual({
      status: 'good',
      kind: 'tenant',
      event: {
        type: 'TenantPlanChanged',
        data: { includedMonthlyActiveTokens: 5 },
        id: event.id,
        tenantId,
        revision: 3,
        position: event.position,
        at: '2026-01-02T01:04:05.000Z',
        recordedAt: event.recordedAt,
        actor,
        traceId: 't',
        idempotency,
      },
    });
  });

  it('needs no metadata: its time is when it was recorded, its version is 1', () => {
    const decoded = decode(logged(), streams);
    expect(decoded).toMatchObject({ status: 'good', event: { at: '2026-05-05T05:05:05.005Z' } });
    expect(decoded.status === 'good' && Object.keys(decoded.event)).not.toContain('actor');
  });

  it('may have unknown metadata', () => {
    expect(decode(logged({ metadata: { $correlationId: 'x', more: 1 } }), streams).status).toBe('good');
  });

  it('may name its own tenant', () => {
    const data = { includedMonthlyActiveTokens: 5, tenantId };
    expect(decode(logged({ data }), streams).status).toBe('good');
  });

  it.each<[string, Partial<LoggedEvent>, RegExp]>([
    ['an unknown type', { type: 'TenantExploded' }, /^The event type TenantExploded is unknown\.$/],
    ['a type named like a property of every object', { type: 'constructor' }, /type constructor is unknown/],
    ['the type __proto__', { type: '__proto__' }, /type __proto__ is unknown/],
    ['an empty type', { type: '' }, /is unknown/],
    ['an unknown version', { metadata: { version: 2 } }, /^Version 2 of TenantPlanChanged is unknown\.$/],
    ['version 0', { metadata: { version: 0 } }, /metadata is wrong.*version/],
    ['a fractional version', { metadata: { version: 1.5 } }, /metadata is wrong.*version/],
    ['a version as text', { metadata: { version: '1' } }, /metadata is wrong.*version/],
    ['metadata that is not JSON', { metadata: Buffer.from('{') }, /metadata is wrong: not JSON/],
    ['metadata that is null', { metadata: null }, /metadata is wrong/],
    ['metadata that is a list', { metadata: [] }, /metadata is wrong/],
    ['a time that is not one', { metadata: { at: 'yesterday' } }, /metadata is wrong.*at/],
    ['a time without a zone', { metadata: { at: '2026-01-01T00:00:00' } }, /metadata is wrong.*at/],
    ['a leap second', { metadata: { at: '2016-12-31T23:59:60Z' } }, /metadata is wrong.*at/],
    ['a zone without minutes', { metadata: { at: '2026-01-01T00:00:00+01' } }, /metadata is wrong.*at/],
    [
      'a time after the year 9999',
      { metadata: { at: '9999-12-31T23:00:00-01:00' } },
      /metadata is wrong.*at/,
    ],
    ['a time before the year 0', { metadata: { at: '0000-01-01T00:00:00+00:01' } }, /metadata is wrong.*at/],
    [
      'an actor of an unknown type',
      { metadata: { actor: { type: 'robot', id: tenantId } } },
      /metadata is wrong.*actor/,
    ],
    ['an actor without id', { metadata: { actor: { type: 'user' } } }, /metadata is wrong.*actor/],
    [
      'incomplete idempotency metadata',
      { metadata: { idempotency: { key: 'k' } } },
      /metadata is wrong.*idempotency/,
    ],
    ['data that is not JSON', { data: Buffer.from('no') }, /^The data is not JSON\.$/],
    ['data that is null', { data: null }, /does not fit version 1 of TenantPlanChanged/],
    ['data that is a list', { data: [] }, /does not fit/],
    ['a missing field', { data: {} }, /does not fit.*includedMonthlyActiveTokens/],
    ['an extra field', { data: { includedMonthlyActiveTokens: 1, more: 1 } }, /does not fit.*additional/],
    ['a number as text', { data: { includedMonthlyActiveTokens: '5' } }, /does not fit/],
    ['a negative number', { data: { includedMonthlyActiveTokens: -1 } }, /does not fit/],
    ['a digest that is not one', keyAdded({ digest: 'key_secret' }), /does not fit.*digest/],
    ['an expiry that is not a time', keyAdded({ expiresAt: 'never' }), /does not fit.*expiresAt/],
    [
      'an expiry beyond the last representable time',
      keyAdded({ expiresAt: '2030-12-31T23:59:60Z' }),
      /does not fit.*expiresAt/,
    ],
    [
      "another tenant's id",
      { data: { includedMonthlyActiveTokens: 1, tenantId: '11111111-1111-4111-8111-111111111111' } },
      /^The data names another tenant, 11111111-/,
    ],
  ])('is bad with %s, with the reason', (_, poison, reason) => {
    const decoded = decode(logged({ ...poison, stream: streams.tenant(tenantId) }), streams);
    expect(decoded).toEqual({
      status: 'bad',
      kind: 'tenant',
      tenantId,
      reason: expect.stringMatching(reason),
    });
  });

  it.each([
    ['TenantDeleted', 'activity'],
    ['TokenCreated', 'tenant'],
  ] as const)('is bad when a %s is in a stream of kind %s', (type, kind) => {
    const data = type === 'TokenCreated' ? { entityId: 'x' } : {};
    const decoded = decode(logged({ type, data, stream: streams[kind](tenantId) }), streams);
    expect(decoded).toMatchObject({ status: 'bad', kind, reason: expect.stringMatching(/does not belong/) });
  });

  it.each(['9999-12-31T23:59:59.999Z', '0000-01-01T00:00:00Z', '9999-12-31T23:59:59+01:00'])(
    'may have happened at %s',
    (occurredAt) => {
      const data = { entityId: 'x', occurredAt };
      const event = logged({ type: 'TokenCreated', data, stream: streams.activity(tenantId) });
      expect(decode(event, streams).status).toBe('good');
    },
  );

  it.each(['9999-12-31T23:59:59-00:01', '0000-01-01T00:00:00+14:00', '2026-02-30T00:00:00Z', '2026-05-01'])(
    'is bad with the time %s, which cannot be ordered',
    (occurredAt) => {
      const data = { entityId: 'x', occurredAt };
      const event = logged({ type: 'TokenCreated', data, stream: streams.activity(tenantId) });
      expect(decode(event, streams)).toMatchObject({
        status: 'bad',
        reason: expect.stringMatching(/occurredAt/),
      });
    },
  );
});

describe('an event to be appended', () => {
  const at = '2026-05-05T05:05:05.005Z';
  const settings = { fingerprintTokens: true, deduplicateTokens: false };
  const parked = { eventId: randomUUID(), eventTenantId: tenantId, reason: 'x' };

  it('must match its schema', () => {
    expect(() =>
      encode({ type: 'TenantPlanChanged', data: { includedMonthlyActiveTokens: -1 } }, { at }),
    ).toThrow(
      expect.objectContaining({
        code: 'event_invalid',
        more: { reason: expect.stringMatching(/includedMonthlyActiveTokens must be >= 0/) },
      }),
    );
    expect(() => encode({ type: 'GapAccepted', data: { ...parked, eventId: 'x' } }, { at })).toThrow(
      /eventId must match format "uuid"/,
    );
  });

  it('may have a name of 200 UTF-16 units, in any combination', () => {
    for (const name of ['x'.repeat(200), '👩'.repeat(100)])
      expect(encode({ type: 'TenantUpdated', data: { name, settings } }, { at }).data).toEqual({
        name,
        settings,
      });
  });

  it('gets an id and a version, and decodes to the original', () => {
    const event = { type: 'TenantPlanChanged', data: { includedMonthlyActiveTokens: 7 } } as const;
    const metadata = { at, actor: { type: 'user', id: tenantId }, traceId: 't', keyId: undefined } as const;
    const encoded = encode(event, metadata);
    expect(encoded.id).not.toBe(encode(event, metadata).id);
    expect(encoded.metadata).toEqual({ ...metadata, version: 1 });
    expect(decode(logged(encoded), streams)).toMatchObject({
      status: 'good',
      event: { ...event, id: encoded.id, at, actor: metadata.actor, traceId: 't' },
    });
    expect(encode(event, metadata, 'my-id').id).toBe('my-id');
  });

  it('may belong to the operator', () => {
    const event = { type: 'EventSetAside', data: parked } as const;
    expect(operatorEventOf(logged(encode(event, { at })))).toEqual(event);
  });
});
