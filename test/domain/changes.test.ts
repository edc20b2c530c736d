import { changesOf } from '../../src/domain/audit-wording';
import type { TenantEvent } from '../../src/domain/events';
import { absent } from '../../src/domain/tenant';
import { minute, tenantAfter } from '../support/given';
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

const of = { applicationId: APPLICATION };
const held = ['tenant:update'];
const settings = { fingerprintTokens: false, deduplicateTokens: true };

/** An event, and each field that it changes: before and after. */
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
    { type: 'ApplicationUpdated', data: { ...of, name: 'Till', permissions: [] } },
    { name: ['Desk', 'Till'], permissions: [held, []] },
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
