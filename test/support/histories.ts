import type { TenantEvent } from '../../src/domain/events';
import type { ApplicationType } from '../../src/domain/permissions';
import { OWNER } from './given';

/** The events that most histories start with. */
export const APPLICATION = '00000000-0000-4000-8000-00000000000a';
export const KEY = '00000000-0000-4000-8000-00000000000b';
export const DIGEST = 'd'.repeat(64);

export const created: TenantEvent = {
  type: 'TenantCreated',
  data: {
    name: 'Acme',
    ownerId: OWNER,
    settings: { fingerprintTokens: false, deduplicateTokens: false },
    includedMonthlyActiveTokens: 10,
  },
};

export const deleted: TenantEvent = { type: 'TenantDeleted', data: {} };

export const applicationCreated = (
  applicationType: ApplicationType = 'management',
  permissions: readonly string[] = ['tenant:update'],
): TenantEvent => ({
  type: 'ApplicationCreated',
  data: { applicationId: APPLICATION, name: 'Desk', applicationType, permissions },
});

export const applicationDeleted: TenantEvent = {
  type: 'ApplicationDeleted',
  data: { applicationId: APPLICATION },
};

export const keyAdded = (expiresAt?: string): TenantEvent => ({
  type: 'KeyAdded',
  data: {
    keyId: KEY,
    applicationId: APPLICATION,
    digest: DIGEST,
    ...(expiresAt === undefined ? {} : { expiresAt }),
  },
});

export const keyRevoked: TenantEvent = {
  type: 'KeyRevoked',
  data: { keyId: KEY, applicationId: APPLICATION },
};
