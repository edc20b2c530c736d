import { addKey, revokeKey } from '../../src/domain/application-keys';
import {
  createApplication,
  deleteApplication,
  type NewApplication,
  updateApplication,
} from '../../src/domain/applications';
import { isAssignable, permissionsOf } from '../../src/domain/authority';
import type { TenantEvent } from '../../src/domain/events';
import { applicationTypes, permissions, type ApplicationType } from '../../src/domain/permissions';
import type { RefusalCode } from '../../src/domain/refusal';
import type { Decide, Tenant } from '../../src/domain/tenant';
import { ACTOR, given, minute } from '../support/given';
import {
  APPLICATION,
  DIGEST,
  KEY,
  applicationCreated,
  applicationDeleted,
  created,
  deleted,
  keyAdded,
  keyRevoked,
} from '../support/histories';

const OTHER = '00000000-0000-4000-8000-0000000000ff';
const OTHER_DIGEST = 'e'.repeat(64);
const key = { keyId: KEY, digest: DIGEST };
const input: NewApplication = {
  applicationId: APPLICATION,
  name: 'Desk',
  type: 'management',
  permissions: ['tenant:update'],
  key,
};
const desk = { id: APPLICATION, name: 'Desk', type: 'management', permissions: ['tenant:update'] };
const applicationIn = (tenant: Tenant) =>
  tenant.status === 'active' ? tenant.applications.get(APPLICATION) : undefined;
const keysIn = (tenant: Tenant) => (tenant.status === 'active' ? [...tenant.keys] : []);
const born = [created, applicationCreated(), keyAdded()] as const;

describe('creating an Application', () => {
  it('adds its first key atomically', () => {
    const tenant = given(created).when(createApplication(input)).then(applicationCreated(), keyAdded());
    expect(applicationIn(tenant)).toEqual({
      ...desk,
      created_at: minute(1),
      created_by: ACTOR,
      revision: 2,
      keys: new Map([[KEY, keysIn(tenant)[0]?.[1]]]),
    });
    expect(keysIn(tenant)).toEqual([
      [
        DIGEST,
        {
          id: KEY,
          application_id: APPLICATION,
          revoked: false,
          digest: DIGEST,
          created_at: minute(2),
          created_by: ACTOR,
        },
      ],
    ]);
    expect(tenant).toMatchObject({ revision: 0 });
  });

  const another = { ...input, key: { ...key, digest: OTHER_DIGEST } };
  it.each<[string, readonly TenantEvent[], NewApplication, RefusalCode]>([
    ['if it exists', born, another, 'already_exists'],
    // Its old keys must stay invalid.
    ['if one with that id was deleted', [...born, applicationDeleted], another, 'already_exists'],
    ['with a key that exists', born, { ...input, applicationId: OTHER }, 'already_exists'],
    [
      'with a key that has already expired',
      [created],
      { ...input, key: { ...key, expiresAt: minute(30) } },
      'validation_failed',
    ],
  ])('is refused %s', (_, history, application, code) => {
    given(...history)
      .when(createApplication(application))
      .thenRefuses(code);
  });
});

const updated = (name: string, held: readonly string[]): TenantEvent => ({
  type: 'ApplicationUpdated',
  data: { applicationId: APPLICATION, name, permissions: held },
});

describe('updating an Application', () => {
  it('is one event, even if nothing changes', () => {
    const { name, permissions: held } = desk;
    for (const update of [{}, { name }, { permissions: held.toReversed() }, { name, permissions: held }])
      given(...born)
        .when(updateApplication(APPLICATION, update))
        .then(updated(name, held));
  });
});

/** From the specification, entered again: which type may hold what. */
const both = new Set(['token:create', 'token:update']);
const onlyPrivate = new Set(['token:read', 'token:search', 'token:delete', 'token:use']);
const expectedOf = (permission: string): readonly ApplicationType[] => {
  if (both.has(permission)) return ['public', 'private'];
  return onlyPrivate.has(permission) ? ['private'] : ['management'];
};

describe('permissions and application types', () => {
  const pairs = permissions.flatMap(({ type }) =>
    applicationTypes.map(
      (applicationType) => [type, applicationType, expectedOf(type).includes(applicationType)] as const,
    ),
  );

  it('make 30 by 3 pairs', () => {
    expect(permissions).toHaveLength(30);
    expect(new Set(permissions.map(({ type }) => type)).size).toBe(30);
    expect(pairs).toHaveLength(90);
    expect(pairs.filter(([, , may]) => may)).toHaveLength(32);
  });

  it.each(pairs)('%s for a %s Application: %s', (permission, type, may) => {
    expect(isAssignable(permission, type)).toBe(may);
    expect(permissionsOf(type).some((known) => known.type === permission)).toBe(may);
    const creating = given(created).when(
      createApplication({ ...input, type, permissions: [permission, permission] }),
    );
    const setting = given(created, applicationCreated(type, [])).when(
      updateApplication(APPLICATION, { permissions: [permission, permission] }),
    );
    if (may) {
      creating.then(applicationCreated(type, [permission]), keyAdded());
      setting.then(updated(desk.name, [permission]));
      return;
    }
    const assignable = permissionsOf(type).map((known) => known.type);
    const sentence = `A ${type} Application may not hold ${permission}. A ${type} Application may hold: ${assignable.join(', ')}.`;
    for (const refused of [creating, setting])
      expect(refused.thenRefuses('validation_failed').more).toEqual({ errors: { permissions: [sentence] } });
  });

  it.each(['', 'token', 'token:*', 'TOKEN:READ', 'tenant:read ', 'constructor'])(
    'do not include "%s"',
    (permission) => {
      for (const type of applicationTypes) expect(isAssignable(permission, type)).toBe(false);
      given(created)
        .when(createApplication({ ...input, permissions: [permission] }))
        .thenRefuses('validation_failed');
      given(...born)
        .when(updateApplication(APPLICATION, { permissions: ['log:read', permission] }))
        .thenRefuses('validation_failed');
    },
  );
});

describe('adding a key', () => {
  const second = { keyId: OTHER, digest: OTHER_DIGEST };

  it.each([minute(29), minute(30), '2026-01-01T01:00:00+01:00'])(
    'is refused if it expires at %s, at minute 30',
    (expiresAt) => {
      given(...born)
        .when(addKey(APPLICATION, { ...second, expiresAt }))
        .thenRefuses('validation_failed');
    },
  );

  it('compares moments, not their text', () => {
    given(...born)
      .when(addKey(APPLICATION, { ...second, expiresAt: '2025-12-31T23:40:00-01:00' }))
      .then({
        type: 'KeyAdded',
        data: {
          keyId: OTHER,
          applicationId: APPLICATION,
          digest: OTHER_DIGEST,
          expiresAt: '2025-12-31T23:40:00-01:00',
        },
      });
  });

  it('is refused if the key exists, even if it is revoked', () => {
    for (const history of [born, [...born, keyRevoked]])
      given(...history)
        .when(addKey(APPLICATION, { ...second, digest: DIGEST }))
        .thenRefuses('already_exists');
  });
});

it('the name of an Application or a key is not blank', () => {
  const blank = { name: ' ', keyId: OTHER, digest: OTHER_DIGEST };
  const create = createApplication({ ...input, applicationId: OTHER, name: ' ' });
  for (const decide of [create, updateApplication(APPLICATION, blank), addKey(APPLICATION, blank)])
    given(...born)
      .when(decide)
      .thenRefuses('validation_failed');
});

describe('an Application that cannot be changed', () => {
  const decisions: readonly [string, Decide][] = [
    ['renameApplication', updateApplication(APPLICATION, { name: 'New' })],
    ['setPermissions', updateApplication(APPLICATION, { permissions: [] })],
    ['deleteApplication', deleteApplication(APPLICATION)],
    ['addKey', addKey(APPLICATION, { ...key, digest: OTHER_DIGEST })],
  ];
  const all: readonly [string, Decide][] = [
    ...decisions,
    ['createApplication', createApplication(input)],
    ['revokeKey', revokeKey(KEY)],
  ];

  it.each(decisions)('refuses %s if it does not exist, or no longer does', (_, decide) => {
    given(created).when(decide).thenRefuses('application_not_found');
    given(...born, applicationDeleted)
      .when(decide)
      .thenRefuses('application_not_found');
  });

  it.each(all)('refuses %s without a tenant', (_, decide) => {
    given().when(decide).thenRefuses('tenant_not_found');
    given(...born, deleted)
      .when(decide)
      .thenRefuses('tenant_deleted');
  });
});
