export const applicationTypes = ['public', 'private', 'management'] as const;
export type ApplicationType = (typeof applicationTypes)[number];

export interface Permission {
  readonly type: string;
  readonly description: string;
  readonly applicationTypes: readonly ApplicationType[];
}

const row = (type: string, description: string, ...types: ApplicationType[]): Permission => ({
  type,
  description,
  applicationTypes: types,
});

/** The permission table of the specification, in its order and wording. */
export const permissions: readonly Permission[] = [
  row('token:create', 'Create tokens', 'public', 'private'),
  row('token:update', 'Update tokens', 'public', 'private'),
  row('token:read', 'Read tokens', 'private'),
  row('token:search', 'Search tokens', 'private'),
  row('token:delete', 'Delete tokens', 'private'),
  row('token:use', "Use tokens in the service's own features (for example Proxy, Reactors)", 'private'),
  row('tenant:read', 'Read Tenants', 'management'),
  row('tenant:update', 'Update Tenants', 'management'),
  row('tenant:delete', 'Delete Tenants', 'management'),
  row('application:read', 'Read Applications', 'management'),
  row('application:create', 'Create Applications', 'management'),
  row('application:update', 'Update Applications and regenerate their API keys', 'management'),
  row('application:delete', 'Delete Applications', 'management'),
  row('log:read', 'Read audit logs', 'management'),
  row('reactor:read', 'Read Reactors', 'management'),
  row('reactor:create', 'Create Reactors', 'management'),
  row('reactor:update', 'Update Reactors', 'management'),
  row('reactor:delete', 'Delete Reactors', 'management'),
  row('proxy:read', 'Read Proxies', 'management'),
  row('proxy:create', 'Create Proxies', 'management'),
  row('proxy:update', 'Update Proxies', 'management'),
  row('proxy:delete', 'Delete Proxies', 'management'),
  row('tenant:member:read', 'Read Tenant members', 'management'),
  row('tenant:member:update', 'Update Tenant members', 'management'),
  row('tenant:member:delete', 'Delete Tenant members', 'management'),
  row('tenant:invitation:create', 'Create Tenant invitations', 'management'),
  row('tenant:invitation:read', 'Read Tenant invitations', 'management'),
  row('tenant:invitation:update', 'Update Tenant invitations', 'management'),
  row('tenant:invitation:delete', 'Delete Tenant invitations', 'management'),
  row('report:read', 'Read reports', 'management'),
];
