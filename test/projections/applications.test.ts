import * as fc from 'fast-check';
import { findApplications, findLiveKeys } from '../../projections/application-pages';
import { applications } from '../../projections/applications';
import { findTenant, tenants } from '../../projections/tenants';
import { addKey, regenerateKey, revokeKey } from '../../src/domain/application-keys';
import { createApplication, deleteApplication, updateApplication } from '../../src/domain/applications';
import { liveKeysOf } from '../../src/domain/authority';
import type { Recorded, TenantEvent } from '../../src/domain/events';
import { isRefusal } from '../../src/domain/refusal';
import {
  absent,
  changePlan,
  createTenant,
  deleteTenant,
  evolve,
  updateTenant,
  type Decide,
  type Tenant,
} from '../../src/domain/tenant';
import { byOperator } from '../support/given';
import { runs, seed, seeded } from '../support/property';
import { given, of, OTHER_TENANT, recorded, TENANT, time, type Given } from './given';

const APP = '11111111-0000-4000-8000-000000000001';
const KEY = '22222222-0000-4000-8000-000000000001';

const appCreated: TenantEvent = {
  type: 'ApplicationCreated',
  data: { applicationId: APP, name: 'App', applicationType: 'private', permissions: ['token:read'] },
};
const updated: TenantEvent = {
  type: 'ApplicationUpdated',
  data: { applicationId: APP, name: 'New', permissions: ['token:create'] },
};
const appDeleted: TenantEvent = { type: 'ApplicationDeleted', data: { applicationId: APP } };
const revoked: TenantEvent = { type: 'KeyRevoked', data: { keyId: KEY, applicationId: APP } };
const expirySet: TenantEvent = {
  type: 'KeyExpirySet',
  data: { keyId: KEY, applicationId: APP, expiresAt: time(88) },
};

describe('the applications projection', () => {
  it.each([updated, appDeleted, revoked, expirySet])(
    'given $type alone, then the tenant is parked',
    async (event) => {
      const { parked } = await given(applications, event, of(OTHER_TENANT, appCreated));
      expect(await parked()).toMatch(/(applications|keys)\/.* is missing/);
      expect(await parked(OTHER_TENANT)).toBeUndefined();
    },
  );
});

/** One step of a random history. Steps that the domain refuses are skipped. */
type Step = { readonly kind: string; readonly app: number; readonly key: number; readonly flag: boolean };

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.record({
    kind: fc.oneof(
      {
        weight: 6,
        arbitrary: fc.constantFrom('rotate', 'create', 'key', 'rename', 'permit', 'update', 'plan'),
      },
      { weight: 3, arbitrary: fc.constantFrom('revoke', 'drop') },
    ),
    app: fc.nat(2),
    key: fc.nat(5),
    flag: fc.boolean(),
  }),
  { maxLength: 40, size: 'max' },
);

const idOf = (kind: string, n: number): string => `${kind.repeat(8)}-0000-4000-8000-00000000000${n}`;
const digestOf = (n: number): string => String(n).repeat(64);

const decisionOf = ({ kind, app, key, flag }: Step, n: number): Decide => {
  const applicationId = idOf('a', app);
  const newKey = {
    keyId: idOf('b', key),
    digest: digestOf(key),
    at: time(n),
    ...(flag ? { expiresAt: time(n + 1 + key) } : {}),
  };
  switch (kind) {
    case 'create':
      return createApplication({ applicationId, name: 'App', type: 'private', permissions: [], key: newKey });
    case 'key':
      return addKey(applicationId, newKey);
    case 'rotate':
      return regenerateKey(applicationId, newKey, flag ? 0 : 60 * key);
    case 'rename':
      return updateApplication(applicationId, { name: `App ${n}` });
    case 'permit':
      return updateApplication(applicationId, {
        permissions: flag ? ['token:read'] : ['token:create', 'token:read'],
      });
    case 'update':
      return updateTenant({ name: `Tenant ${n}`, settings: { fingerprintTokens: flag } });
    case 'plan':
      return changePlan(n);
    case 'revoke':
      return revokeKey(idOf('b', key));
    case 'drop':
      return deleteApplication(applicationId);
    default:
      return deleteTenant();
  }
};

const evolved = (events: readonly Given[]): Tenant =>
  (recorded(events) as readonly Recorded<TenantEvent>[]).reduce<Tenant>(evolve, absent);

/** The history that results from the steps, each with or without an actor. */
const historyOf = (all: readonly Step[]): readonly Given[] => {
  const born = createTenant({ name: 'Acme', ownerId: idOf('c', 0), includedMonthlyActiveTokens: 1 });
  const events: Given[] = [...born(absent, byOperator)];
  for (const step of all)
    try {
      const decided = decisionOf(step, events.length)(evolved(events), {
        ...byOperator,
        at: time(events.length),
      });
      const who = step.key % 2 === 0 ? null : idOf('e', step.app);
      for (const event of decided) events.push({ ...event, circumstance: { by: who } });
    } catch (error) {
      if (!isRefusal(error)) throw error;
    }
  return events;
};

describe('after random histories', () => {
  it(seeded('the read models agree with the domain'), async () => {
    const seen = new Set<string>();
    const property = fc.asyncProperty(steps, fc.boolean(), async (all, ended) => {
      const end = { kind: 'end', app: 0, key: 0, flag: false };
      const events = historyOf(ended ? [...all, end] : all);
      const now = evolved(events);
      const keys = await given(applications, ...events);
      expect(await keys.parked()).toBeUndefined();
      const expected = now.status === 'absent' ? [] : [...now.applications.values()];
      const question = { filter: {}, at: time(events.length), page: 1, size: 100 };
      const listed = await findApplications(keys.reader, TENANT, question);
      expect(listed.total).toBe(expected.length);
      expect(listed.applications).toEqual(
        expected.map(({ keys: _keys, ...application }) => ({
          ...application,
          listed_at: expect.any(Number) as number,
        })),
      );
      for (const at of [time(0), time(events.length), time(500)])
        for (const application of expected) {
          const live = liveKeysOf(application, at);
          const found = await findLiveKeys(keys.reader, TENANT, application.id, at);
          expect(found.map(({ id, expires_at }) => `${id} ${expires_at}`).toSorted()).toEqual(
            live.map(({ id, expires_at }) => `${id} ${expires_at}`).toSorted(),
          );
          seen.add(live.some(({ expires_at }) => expires_at !== undefined) ? 'expiring' : 'lasting');
        }

      const { reader } = await given(tenants, ...events);
      const document = await findTenant(reader, TENANT);
      if (now.status === 'absent') throw new Error('It was created.');
      expect(document).toEqual({
        id: TENANT,
        owner_id: now.ownerId,
        name: now.name,
        settings: {
          fingerprint_tokens: now.settings.fingerprintTokens,
          deduplicate_tokens: now.settings.deduplicateTokens,
        },
        created_by: now.created_by,
        created_at: now.created_at,
        modified_at: now.modified_at,
        modified_by: now.modified_by,
        revision: now.revision,
        included_monthly_active_tokens: now.includedMonthlyActiveTokens,
        ...(now.status === 'deleted' ? { deleted_at: expect.any(String) } : {}),
      });
    });
    const expiring = { kind: 'create', app: 0, key: 5, flag: true };
    const lasting = { kind: 'create', app: 1, key: 0, flag: false };
    await fc.assert(property, { seed, numRuns: runs(60), examples: [[[expiring, lasting], false]] });
    expect([...seen].toSorted()).toEqual(['expiring', 'lasting']);
  });
});
