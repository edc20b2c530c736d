import type { TenantDocument } from '../../../projections/tenants';
import { flag, described, moment, record, text, uuid } from './schema';

/** Booleans, encoded as strings. */
export const tenantSettings = {
  fingerprint_tokens: described(
    flag,
    'Whether all tokens are fingerprinted with the default expression of their type.',
  ),
  deduplicate_tokens: described(flag, 'Whether tokens are deduplicated when they are created or updated.'),
};

export const tenantSchema = record(
  'Tenant',
  {
    id: described(uuid, 'The id of the Tenant.'),
    owner_id: described(uuid, 'The user who owns the Tenant.'),
    name: described(text, 'The name of the Tenant.', 'Acme'),
    settings: described(record('TenantSettings', tenantSettings), 'The settings of the Tenant.'),
    created_by: described(uuid, 'The user who created the Tenant.'),
    created_at: described(moment, 'When it was created.'),
    modified_by: described(uuid, 'The user or the Application that modified it last.'),
    modified_at: described(moment, 'When the request arrived that modified it last.'),
  },
  ['created_by', 'modified_by', 'modified_at'],
);

export const tenantExample = {
  id: '11111111-2222-4333-8444-555555555555',
  owner_id: '00000000-0000-0000-0000-000000000000',
  name: 'Acme',
  settings: { fingerprint_tokens: 'false', deduplicate_tokens: 'true' },
  created_by: '00000000-0000-0000-0000-000000000000',
  created_at: '2026-01-31T12:00:00.000Z',
  modified_by: 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee',
  modified_at: '2026-02-01T09:30:00.123Z',
};

/** The Tenant as specified. Undefined members are omitted from the JSON. */
export const tenantView = (document: TenantDocument) => ({
  id: document.id,
  owner_id: document.owner_id,
  name: document.name,
  settings: {
    fingerprint_tokens: String(document.settings.fingerprint_tokens),
    deduplicate_tokens: String(document.settings.deduplicate_tokens),
  },
  created_by: document.created_by,
  created_at: document.created_at,
  modified_by: document.modified_by,
  modified_at: document.modified_at,
});
