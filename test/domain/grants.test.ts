import { addKey, regenerateKey, revokeKey } from '../../src/domain/application-keys';
import { createApplication, deleteApplication, updateApplication } from '../../src/domain/applications';
import { permissionsOf } from '../../src/domain/authority';
import type { TenantEvent } from '../../src/domain/events';
import { permissions, type ApplicationType } from '../../src/domain/permissions';
import { QUOTAS, type Decide, type DecisionContext } from '../../src/domain/tenant';
import { given, minute } from '../support/given';
import { created } from '../support/histories';

const id = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const digest = (n: number): string => n.toString(16).padStart(64, '0');
const [SELF, OTHER, NEW] = [id(1), id(2), id(3)];
const [OWN_KEY, OTHER_KEY, NEW_KEY] = [id(11), id(12), id(13)];

const applicationCreated = (
  applicationId: string,
  held: readonly string[],
  applicationType: ApplicationType = 'management',
): TenantEvent => ({
  type: 'ApplicationCreated',
  data: { applicationId, name: 'A', applicationType, permissions: held },
});
const keyAdded = (keyId: string, applicationId: string, n: number, expiresAt?: string): TenantEvent => ({
  type: 'KeyAdded',
  data: { keyId, applicationId, digest: digest(n), ...(expiresAt === undefined ? {} : { expiresAt }) },
});

/** A decision requested by the Application SELF, which holds these permissions, with its key. */
const by = (held: readonly string[]): DecisionContext => ({
  requester: {
    kind: 'application',
    application: { id: SELF, name: 'Self', type: 'management', permissions: held },
  },
  at: minute(30),
});

/** SELF holds the first permissions, OTHER the second; each has one key. */
const two = (own: readonly string[], others: readonly string[], type: ApplicationType = 'management') =>
  [
    created,
    applicationCreated(SELF, own),
    keyAdded(OWN_KEY, SELF, 1),
    applicationCreated(OTHER, others, type),
    keyAdded(OTHER_KEY, OTHER, 2),
  ] as const;

const all = permissionsOf('management').map(({ type }) => type);
const key = { keyId: NEW_KEY, digest: digest(3) };
const creation = (held: readonly string[], type: ApplicationType = 'management'): Decide =>
  createApplication({ applicationId: NEW, name: 'New', type, permissions: held, key });

const SOME = ['application:read', 'application:create', 'application:update', 'log:read'];

describe('an Application that grants permissions', () => {
  it.each(permissions.map(({ type, applicationTypes }) => [type, applicationTypes] as const))(
    'must hold %s to grant it, whether it creates or updates',
    (permission, types) => {
      const type = types[0] as ApplicationType;
      const holds = SOME.includes(permission);
      const creating = given(...two(SOME, [], type)).when(creation([permission], type), by(SOME));
      const updating = given(...two(SOME, [], type)).when(
        updateApplication(OTHER, { permissions: [permission] }),
        by(SOME),
      );
      if (holds) {
        creating.then(applicationCreated2([permission], type), keyAdded(NEW_KEY, NEW, 3));
        updating.then(updated(OTHER, 'A', [permission]));
        return;
      }
      expect(creating.thenRefuses('permission_not_held').more).toEqual({ missing_permissions: [permission] });
      expect(updating.thenRefuses('permission_not_held').more).toEqual({ missing_permissions: [permission] });
    },
  );

  it('may grant every permission if it holds all that its type may hold', () => {
    for (const { type: permission, applicationTypes } of permissions) {
      const type = applicationTypes[0] as ApplicationType;
      given(...two(all, [], type))
        .when(creation([permission], type), by(all))
        .then(applicationCreated2([permission], type), keyAdded(NEW_KEY, NEW, 3));
    }
  });

  it.each(all)('may not grant every permission if it holds all but %s', (missing) => {
    const most = all.filter((permission) => permission !== missing);
    given(...two(most, []))
      .when(creation([missing]), by(most))
      .thenRefuses('permission_not_held');
    given(...two(most, [], 'private'))
      .when(creation(['token:read'], 'private'), by(most))
      .thenRefuses('permission_not_held');
  });

  it('need not hold what the other one already holds, nor what it withdraws', () => {
    given(...two(SOME, ['tenant:delete']))
      .when(updateApplication(OTHER, { permissions: ['tenant:delete', 'log:read'] }), by(SOME))
      .then(updated(OTHER, 'A', ['tenant:delete', 'log:read']));
    given(...two(SOME, ['tenant:delete', 'log:read']))
      .when(updateApplication(OTHER, { permissions: ['log:read'] }), by(SOME))
      .then(updated(OTHER, 'A', ['log:read']));
    given(...two(SOME, ['tenant:delete']))
      .when(updateApplication(OTHER, { name: 'Renamed' }), by(SOME))
      .then(updated(OTHER, 'Renamed', ['tenant:delete']));
  });

  it('cannot grant itself more', () => {
    given(...two(SOME, all))
      .when(updateApplication(SELF, { permissions: [...SOME, 'tenant:delete'] }), by(SOME))
      .thenRefuses('permission_not_held');
  });

  it('does not hold what its type may not hold, whatever its events say', () => {
    const odd = [...SOME, 'token:read'];
    given(...two(odd, [], 'private'))
      .when(creation(['token:read'], 'private'), by(odd))
      .thenRefuses('permission_not_held');
  });
});

const applicationCreated2 = (held: readonly string[], type: ApplicationType): TenantEvent => ({
  type: 'ApplicationCreated',
  data: { applicationId: NEW, name: 'New', applicationType: type, permissions: held },
});
const updated = (applicationId: string, name: string, held: readonly string[]): TenantEvent => ({
  type: 'ApplicationUpdated',
  data: { applicationId, name, permissions: held },
});
const revoked = (keyId: string, applicationId: string): TenantEvent => ({
  type: 'KeyRevoked',
  data: { keyId, applicationId },
});

describe('a key of another Application', () => {
  const waysToGetOne: readonly [string, Decide][] = [
    ['added', addKey(OTHER, key)],
    ['regenerated at once', regenerateKey(OTHER, key, 0)],
    ['regenerated with a grace period', regenerateKey(OTHER, key, 60)],
  ];

  it.each(waysToGetOne)('is not issued to one that holds less: %s', (_, decide) => {
    const refused = given(...two(SOME, ['log:read', 'tenant:delete']))
      .when(decide, by(SOME))
      .thenRefuses('permission_not_held');
    expect(refused.more).toEqual({ missing_permissions: ['tenant:delete'] });
    given(...two(SOME, ['token:read'], 'private'))
      .when(decide, by(SOME))
      .thenRefuses('permission_not_held');
  });

  it('is issued to one that holds as much, or everything', () => {
    given(...two(SOME, ['log:read']))
      .when(addKey(OTHER, key), by(SOME))
      .then(keyAdded(NEW_KEY, OTHER, 3));
    given(...two(all, ['token:read'], 'private'))
      .when(addKey(OTHER, key), by(all))
      .then(keyAdded(NEW_KEY, OTHER, 3));
  });
});

describe('an Application that manages itself', () => {
  it.each<[string, Decide, TenantEvent]>([
    ['delete itself', deleteApplication(SELF), { type: 'ApplicationDeleted', data: { applicationId: SELF } }],
    ['give up permissions', updateApplication(SELF, { permissions: [] }), updated(SELF, 'A', [])],
    ['revoke its own key', revokeKey(OWN_KEY, SELF), revoked(OWN_KEY, SELF)],
  ])('may %s', (_, decide, event) => {
    given(...two(SOME, []))
      .when(decide, by(SOME))
      .then(event);
  });
});

describe('limits', () => {
  const many = (count: number, event: (n: number) => TenantEvent): readonly TenantEvent[] =>
    Array.from({ length: count }, (_, i) => event(1_000 + i));

  it('apply to Applications, and one more is possible after a deletion', () => {
    const full = [...two(all, []), ...many(QUOTAS.applications - 2, (n) => applicationCreated(id(n), []))];
    given(...full)
      .when(creation([]), by(all))
      .thenRefuses('quota_exceeded');
    given(...full, { type: 'ApplicationDeleted', data: { applicationId: OTHER } })
      .when(creation([]), by(all))
      .then(applicationCreated2([], 'management'), keyAdded(NEW_KEY, NEW, 3));
  });

  it('apply to keys that are neither revoked nor expired', () => {
    const more = many(QUOTAS.liveKeys - 1, (n) => keyAdded(id(n), OTHER, n, minute(31)));
    const full = [...two(all, []), ...more];
    given(...full)
      .when(addKey(OTHER, key), by(all))
      .thenRefuses('quota_exceeded');
    given(...full)
      .when(regenerateKey(OTHER, key, 10), by(all))
      .thenRefuses('quota_exceeded');
    given(...full, revoked(OTHER_KEY, OTHER))
      .when(addKey(OTHER, key), by(all))
      .then(keyAdded(NEW_KEY, OTHER, 3));
    given(...full)
      .when(addKey(OTHER, key), { ...by(all), at: minute(31) })
      .then(keyAdded(NEW_KEY, OTHER, 3));
    given(...full)
      .when(regenerateKey(OTHER, key, 0), by(all))
      .then(
        revoked(OTHER_KEY, OTHER),
        ...many(QUOTAS.liveKeys - 1, (n) => revoked(id(n), OTHER)),
        keyAdded(NEW_KEY, OTHER, 3),
      );
  });
});

describe('the limit of keys of a whole tenant', () => {
  const documented = QUOTAS.liveKeysInAll;
  beforeAll(() => void (QUOTAS.liveKeysInAll = 4));
  afterAll(() => void (QUOTAS.liveKeysInAll = documented));

  it('is 5,000', () => expect(documented).toBe(5_000));

  const THIRD = id(7);
  /** One key is that of the caller, one that of the other Application. */
  const full = [
    ...two(all, []),
    applicationCreated(THIRD, []),
    keyAdded(id(8), THIRD, 8),
    keyAdded(id(9), THIRD, 9, minute(31)),
  ];

  it('applies to every way of getting one', () => {
    for (const decide of [addKey(OTHER, key), creation([]), regenerateKey(OTHER, key, 10)])
      given(...full)
        .when(decide, by(all))
        .thenRefuses('quota_exceeded');
    given(...full)
      .when(regenerateKey(OTHER, key, 0), by(all))
      .then(revoked(OTHER_KEY, OTHER), keyAdded(NEW_KEY, OTHER, 3));
  });

  it.each<[string, readonly TenantEvent[], string]>([
    ['revoked', [revoked(id(8), THIRD)], minute(30)],
    ['expired', [], minute(31)],
    [
      'of a deleted Application',
      [{ type: 'ApplicationDeleted', data: { applicationId: THIRD } }],
      minute(30),
    ],
  ])('does not count keys that are %s', (_, more, at) => {
    given(...full, ...more)
      .when(addKey(OTHER, key), { ...by(all), at })
      .then(keyAdded(NEW_KEY, OTHER, 3));
  });
});

describe('regenerating a key with a grace period', () => {
  it('ends the others after it, but none later than it would have ended', () => {
    const expirySet = (keyId: string, expiresAt: string): TenantEvent => ({
      type: 'KeyExpirySet',
      data: { keyId, applicationId: OTHER, expiresAt },
    });
    given(
      ...two(all, []),
      keyAdded(id(14), OTHER, 4, minute(31)),
      keyAdded(id(15), OTHER, 5, minute(60)),
      keyAdded(id(16), OTHER, 6, minute(29)),
      keyAdded(id(17), OTHER, 7),
      expirySet(id(17), minute(31)),
    )
      .when(regenerateKey(OTHER, key, 120), by(all))
      .then(expirySet(OTHER_KEY, minute(32)), expirySet(id(15), minute(32)), keyAdded(NEW_KEY, OTHER, 3));
  });
});

describe('revoking a key of an Application', () => {
  it.each([
    ['of another Application', OWN_KEY],
    ['that is revoked', id(14)],
    ['that is expired', id(15)],
    ['that does not exist', id(99)],
  ])('is refused for one %s, as if it had never existed', (_, keyId) => {
    given(
      ...two(all, []),
      keyAdded(id(14), OTHER, 4),
      revoked(id(14), OTHER),
      keyAdded(id(15), OTHER, 5, minute(29)),
    )
      .when(revokeKey(keyId, OTHER), by(all))
      .thenRefuses('key_not_found');
  });
});
