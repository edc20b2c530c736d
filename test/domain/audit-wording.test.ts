import * as fc from 'fast-check';
import { auditLine, changesOf, displayName, knownEntityTypes } from '../../src/domain/audit-wording';
import { eventSchemas, type EventType, type Recorded, type TenantEvent } from '../../src/domain/events';
import { absent } from '../../src/domain/tenant';
import { decode } from '../../src/event-log/codec';
import { streamNames } from '../../src/event-log/streams';
import { anyCharacter } from '../support/any-character';
import { minute, TENANT, tenantAfter } from '../support/given';
import {
  APPLICATION,
  applicationCreated,
  applicationDeleted,
  created,
  deleted,
  DIGEST,
  KEY,
  keyAdded,
  keyRevoked,
} from '../support/histories';
import { seed, seeded } from '../support/property';
import { loggedSample, sampleOf } from '../support/samples';

const types = Object.keys(eventSchemas) as EventType[];

/** Entity type, operation and message of every event that is not a fact about an entity. */
const lines: Readonly<Record<string, readonly [string, string, string]>> = {
  TenantCreated: ['tenant', 'create', 'Tenant created'],
  TenantUpdated: ['tenant', 'update', 'Tenant updated'],
  TenantPlanChanged: ['tenant', 'update', 'Tenant plan changed'],
  TenantDeleted: ['tenant', 'delete', 'Tenant deleted'],
  ApplicationCreated: ['application', 'create', 'Application created'],
  ApplicationUpdated: ['application', 'update', 'Application updated'],
  ApplicationDeleted: ['application', 'delete', 'Application deleted'],
  KeyAdded: ['key', 'create', 'Key added'],
  KeyExpirySet: ['key', 'update', 'Key expiry set'],
  KeyRevoked: ['key', 'delete', 'Key revoked'],
  KeyUsed: [
    'key',
    'deny',
    'Key refused 3 times (lacks tenant:update; revoked), used 10 times, 500 events given out on 2026-01-31',
  ],
};
const verbs = { Created: 'create', Read: 'read', Used: 'use', Updated: 'update', Deleted: 'delete' };

const lineFor = (type: string): readonly [string, string, string] => {
  if (lines[type] !== undefined) return lines[type];
  const [, entity = '', operation = ''] =
    /^(Token|Card|Bank|Reactor|Proxy)(Created|Read|Used|Updated|Deleted)$/.exec(type) ?? [];
  return [
    entity.toLowerCase(),
    verbs[operation as keyof typeof verbs],
    `${entity} ${operation.toLowerCase()}`,
  ];
};

const recorded = (type: EventType): Recorded => {
  const decoded = decode(loggedSample(sampleOf(type)), streamNames());
  if (decoded.status !== 'good') throw new Error(JSON.stringify(decoded));
  return decoded.event;
};

const activity = (data: Record<string, unknown>): Recorded =>
  ({ ...recorded('ActivityReported'), data: { entityId: 'e', ...data } }) as Recorded;

describe('the audit line', () => {
  it.each(types.filter((type) => type !== 'ActivityReported'))('of %s', (type) => {
    const event = recorded(type);
    const data = event.data as Record<string, string>;
    const entityId =
      data['entityId'] ??
      (type.startsWith('Key') ? data['keyId'] : undefined) ??
      data['applicationId'] ??
      TENANT;
    const { message: own, ...rest } = data;
    const [entityType, operation, message] = lineFor(type);
    const expected = { entityType, entityId, operation, message };
    expect(auditLine({ ...event, data: rest } as unknown as Recorded)).toEqual(expected);
    expect(auditLine(event)).toEqual({ ...expected, message: own ?? message });
  });

  it('of an ApplicationUpdated says so if nothing changed', () => {
    const updated = recorded('ApplicationUpdated');
    const message = 'Application updated, nothing changed';
    expect(auditLine({ ...updated, changes: [] })).toMatchObject({ message });
  });

  it('of ActivityReported is as reported, its words in lower case', () => {
    const data = { entityType: 'Invoice', operation: 'Sent', entityId: 'In-1', message: 'To Ann' };
    expect(auditLine(activity(data))).toEqual({
      entityType: 'invoice',
      entityId: 'In-1',
      operation: 'sent',
      message: 'To Ann',
    });
  });

  it('of ActivityReported without a message names type and operation', () => {
    const { message } = auditLine(activity({ entityType: 'Invoice', operation: 'sent' }));
    expect(message).toBe('Invoice sent');
  });

  it('maps a known entity type in any letter case to that type', () => {
    expect(auditLine(activity({ entityType: 'TOKEN', operation: 'READ' }))).toMatchObject({
      entityType: 'token',
      operation: 'read',
    });
  });

  it.each([
    ['250 characters', 'x'.repeat(250), 'x'.repeat(250)],
    ['251 characters', 'x'.repeat(251), 'x'.repeat(250)],
    ['a surrogate pair that is cut', `${'x'.repeat(249)}😀`, `${'x'.repeat(249)}\ufffd`],
    ['a surrogate pair that fits', `${'x'.repeat(248)}😀!`, `${'x'.repeat(248)}😀`],
  ])('keeps at most 250 characters of a message: %s', (_, told, kept) => {
    const { message } = auditLine(activity({ entityType: 'a', operation: 'b', message: told }));
    expect(message).toBe(kept);
  });

  it(seeded('is short, well-formed and in lower case, whatever is reported'), () => {
    const text = fc.string({ unit: anyCharacter, maxLength: 600 });
    const word = fc.stringMatching(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/);
    fc.assert(
      fc.property(word, word, fc.option(text, { nil: undefined }), (entityType, operation, message) => {
        const line = auditLine(activity({ entityType, operation, message }));
        expect(line.message.length).toBeLessThanOrEqual(250);
        expect(line.message.isWellFormed()).toBe(true);
        expect(line.operation).toBe(operation.toLowerCase());
        expect(line.entityType).toBe(entityType.toLowerCase());
      }),
      { seed },
    );
  });
});

describe('entity types', () => {
  it('built into every tenant are those of the API', () => {
    expect(knownEntityTypes).toEqual(['application', 'bank', 'card', 'proxy', 'reactor', 'tenant', 'token']);
  });

  it.each([
    ['token', 'Token'],
    ['tenant_member', 'Tenant member'],
    ['tenant-member', 'Tenant member'],
    ['a__b--c', 'A b c'],
    ['x', 'X'],
    ['trailing_', 'Trailing'],
    ['v2', 'V2'],
  ])('%s is displayed as %s', (value, shown) => {
    expect(displayName(value)).toBe(shown);
  });
});

const of = { applicationId: APPLICATION };
const [held, other] = [['tenant:update'], ['tenant:delete']];
const settings = { fingerprintTokens: false, deduplicateTokens: true };

const cases: readonly (readonly [TenantEvent, Readonly<Record<string, readonly [unknown, unknown]>>])[] = [
  [
    { type: 'TenantUpdated', data: { name: 'Other', settings } },
    { name: ['Acme', 'Other'], 'settings.deduplicate_tokens': [false, true] },
  ],
  [
    { type: 'TenantUpdated', data: { name: 'Acme', settings: { ...settings, deduplicateTokens: false } } },
    {},
  ],
  [
    { type: 'TenantPlanChanged', data: { includedMonthlyActiveTokens: 7 } },
    { included_monthly_active_tokens: [10, 7] },
  ],
  [deleted, { status: ['active', 'deleted'] }],
  [
    { type: 'ApplicationUpdated', data: { ...of, name: 'Till', permissions: held } },
    { name: ['Desk', 'Till'] },
  ],
  [
    { type: 'ApplicationUpdated', data: { ...of, name: 'Till', permissions: other } },
    { name: ['Desk', 'Till'], permissions: [held, other] },
  ],
  [
    { type: 'ApplicationUpdated', data: { ...of, name: 'Desk', permissions: [...held, ...other] } },
    { permissions: [held, [...held, ...other]] },
  ],
  [{ type: 'ApplicationUpdated', data: { ...of, name: 'Desk', permissions: [...held] } }, {}],
  [applicationDeleted, { name: ['Desk', null], type: ['management', null], permissions: [held, null] }],
  [
    { type: 'KeyExpirySet', data: { ...of, keyId: KEY, expiresAt: minute(9) } },
    { expires_at: [null, minute(9)] },
  ],
  [keyRevoked, { revoked: [false, true] }],
  [
    {
      type: 'KeyAdded',
      data: { ...of, keyId: '00000000-0000-4000-8000-00000000000c', digest: 'e'.repeat(64), name: 'Second' },
    },
    {},
  ],
];

describe('what an event changes', () => {
  const before = tenantAfter([created, applicationCreated('management', held), keyAdded()]);

  it.each(cases)('%j', (event, expected) => {
    const changes = changesOf(before, event);
    expect(Object.fromEntries(changes.map(({ field, from, to }) => [field, [from, to]]))).toEqual(expected);
    expect(JSON.stringify(changes)).not.toContain(DIGEST);
  });

  it('is nothing when the tenant is created', () => {
    expect(changesOf(absent, created)).toEqual([]);
  });
});
