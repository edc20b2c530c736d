import { isAssignable, isExpired, keyStatusIn, mustHold, requireValid } from '../../src/domain/authority';
import type { TenantEvent } from '../../src/domain/events';
import { applicationTypes, permissions } from '../../src/domain/permissions';
import { isRefusal } from '../../src/domain/refusal';
import type { KeyHolder } from '../../src/domain/tenant';
import { minute, tenantAfter } from '../support/given';
import {
  APPLICATION,
  DIGEST,
  applicationCreated,
  applicationDeleted,
  created,
  deleted,
  keyAdded,
  keyRevoked,
} from '../support/histories';

const NOW = minute(30);
const thrownBy = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (error) {
    return error;
  }
};

describe('the status of a key', () => {
  it.each<[string, readonly TenantEvent[]]>([
    ['unknown', []],
    ['unknown', [created]],
    ['unknown', [created, deleted]],
    ['valid', [created, applicationCreated(), keyAdded()]],
    ['valid', [created, applicationCreated(), keyAdded(minute(31))]],
    ['expired', [created, applicationCreated(), keyAdded(minute(30))]],
    ['expired', [created, applicationCreated(), keyAdded(minute(29))]],
    ['revoked', [created, applicationCreated(), keyAdded(), keyRevoked]],
    ['revoked', [created, applicationCreated(), keyAdded(minute(1)), keyRevoked]],
    ['revoked', [created, applicationCreated(), keyAdded(), keyRevoked, deleted]],
    ['revoked', [created, applicationCreated(), keyAdded(), applicationDeleted, keyRevoked]],
    ['application_deleted', [created, applicationCreated(), keyAdded(), applicationDeleted]],
    ['application_deleted', [created, applicationCreated(), keyAdded(), applicationDeleted, deleted]],
    ['tenant_deleted', [created, applicationCreated(), keyAdded(), deleted]],
    ['expired', [created, applicationCreated(), keyAdded(minute(1)), deleted]],
  ])('is %s', (status, history) => {
    const found = keyStatusIn(tenantAfter(history), DIGEST, NOW);
    expect(found.status).toBe(status);
    if (history.includes(deleted)) expect(found).not.toHaveProperty('key');
    const answer = thrownBy(() => requireValid(found));
    if (status === 'valid')
      expect(answer).toMatchObject({ application: { id: APPLICATION, permissions: ['tenant:update'] } });
    else expect(answer).toMatchObject({ code: 'key_refused', more: { reason: status } });
  });

  it('leads to the same message whatever the reason, so that nobody learns it', () => {
    const sentences = (['unknown', 'revoked', 'expired', 'application_deleted'] as const).map(
      (status) => (thrownBy(() => requireValid({ status })) as Error).message,
    );
    expect(new Set(sentences).size).toBe(1);
  });

  it('is unknown for another digest', () => {
    const tenant = tenantAfter([created, applicationCreated(), keyAdded()]);
    expect(keyStatusIn(tenant, 'f'.repeat(64), NOW).status).toBe('unknown');
  });
});

describe('expiry', () => {
  it.each([
    [undefined, NOW, false],
    [minute(31), NOW, false],
    [NOW, NOW, true],
    [minute(29), NOW, true],
    ['2026-01-01T01:31:00+01:00', NOW, false],
    ['2026-01-01T01:30:00+01:00', NOW, true],
  ])('%s at %s: %s', (expiresAt, at, expected) => {
    expect(isExpired(expiresAt, at)).toBe(expected);
  });
});

describe('holding a permission', () => {
  const pairs = permissions.flatMap(({ type }) => applicationTypes.map((kind) => [type, kind] as const));

  it.each(pairs)('%s counts for a %s Application only if its type may hold it', (permission, type) => {
    const holder = (held: readonly string[]): KeyHolder => ({
      id: APPLICATION,
      name: 'App',
      type,
      permissions: held,
    });
    const assignable = isAssignable(permission, type);
    const more = { required_permission: permission, application_type: type, assignable };
    const all = permissions.map((row) => row.type);
    const answer = thrownBy(() => mustHold(holder(all), permission));
    if (assignable) expect(answer).toBeUndefined();
    else expect(answer).toMatchObject({ code: 'permission_missing', more });
    const refused = thrownBy(() => mustHold(holder(all.filter((other) => other !== permission)), permission));
    expect(refused).toMatchObject({ code: 'permission_missing', more });
    expect(isRefusal(refused)).toBe(true);
  });
});
