import type { TenantSettings } from '../domain/events';
import type { Tenant } from '../domain/tenant';
import type { TenantDocument } from '../../projections/tenants';
import { flag, moment, record, text, uuid } from './schema';

/** The Tenant of the specification. Optional fields are left out when there is no value. */
export interface TenantView {
  readonly id: string;
  readonly owner_id: string;
  readonly name: string;
  readonly settings: { readonly fingerprint_tokens: string; readonly deduplicate_tokens: string };
  readonly created_by?: string;
  readonly created_at: string;
  readonly modified_by?: string;
  readonly modified_at?: string;
}

export const tenantSchema = record(
  'Tenant',
  {
    id: uuid,
    owner_id: uuid,
    name: text,
    settings: record('TenantSettings', { fingerprint_tokens: flag, deduplicate_tokens: flag }),
    created_by: uuid,
    created_at: moment,
    modified_by: uuid,
    modified_at: moment,
  },
  ['created_by', 'modified_by', 'modified_at'],
);

type Settings = TenantDocument['settings'];

type MaybeUndefined<T> = { [K in keyof Required<T>]: T[K] | undefined };

/** What is undefined does not stand in the JSON. */
const present = (fields: MaybeUndefined<TenantView>): TenantView => fields as unknown as TenantView;

const settingsView = (settings: Settings): TenantView['settings'] => ({
  fingerprint_tokens: String(settings.fingerprint_tokens),
  deduplicate_tokens: String(settings.deduplicate_tokens),
});

export const viewOfDocument = (document: TenantDocument): TenantView =>
  present({
    id: document.id,
    owner_id: document.owner_id,
    name: document.name,
    settings: settingsView(document.settings),
    created_by: document.created_by,
    created_at: document.created_at,
    modified_by: document.modified_by,
    modified_at: document.modified_at,
  });

const documentSettings = (settings: TenantSettings): Settings => ({
  fingerprint_tokens: settings.fingerprintTokens,
  deduplicate_tokens: settings.deduplicateTokens,
});

export const viewOfTenant = (tenant: Exclude<Tenant, { status: 'absent' }>): TenantView =>
  present({
    id: tenant.id,
    owner_id: tenant.ownerId,
    name: tenant.name,
    settings: settingsView(documentSettings(tenant.settings)),
    created_by: tenant.created.by,
    created_at: tenant.created.at,
    modified_by: tenant.modified?.by,
    modified_at: tenant.modified?.at,
  });
