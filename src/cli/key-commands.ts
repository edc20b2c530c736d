import { Command, Option } from 'commander';
import type { KeyDocument } from '../../projections/applications';
import { newKey } from '../app/operator';
import { addKey, revokeKey } from '../domain/applications';
import { isExpired } from '../domain/authority';
import { actorOption, commandGroup, moment, tenantOption, uuid } from './arguments';
import { applicationsOf, keysOf, knownApplication, knownTenant } from './lookups';
import { sessionCommand } from './operator-session';
import { printMany, printOne } from './output';

interface Common {
  readonly tenant: string;
  readonly actor?: string;
  readonly json?: boolean;
}

interface CreateOptions extends Common {
  readonly application: string;
  readonly expires?: string;
}

const create = (): Command =>
  sessionCommand(
    'create',
    'add a key to an Application; it is shown once',
    async (session, options: CreateOptions) => {
      const { tenant, application, expires } = options;
      const { key, input } = newKey(tenant, expires);
      await session.write(tenant, addKey(application, input), options.actor);
      const view = { application_id: application, key_id: input.keyId };
      printOne({ ...view, expires_at: expires ?? null, key }, options);
    },
  )
    .addOption(tenantOption())
    .requiredOption('--application <uuid>', 'the Application', uuid)
    .addOption(new Option('--expires <time>', 'when it expires (default: never)').argParser(moment))
    .addOption(actorOption());

/** Whether what a key belongs to is deleted, which makes the key useless. */
interface Owners {
  readonly tenantDeleted: boolean;
  readonly deletedApplications: ReadonlySet<string>;
}

const statusOf = (key: KeyDocument, { tenantDeleted, deletedApplications }: Owners): string => {
  if (key.revoked_at !== undefined) return 'revoked';
  if (isExpired(key.expires_at, new Date().toISOString())) return 'expired';
  if (tenantDeleted) return 'tenant_deleted';
  return deletedApplications.has(key.application_id) ? 'application_deleted' : 'active';
};

const viewOf = (key: KeyDocument, owners: Owners, lastUse: string | undefined) => ({
  key_id: key.id,
  application_id: key.application_id,
  status: statusOf(key, owners),
  created_at: key.created_at,
  expires_at: key.expires_at ?? null,
  revoked_at: key.revoked_at ?? null,
  last_used_at: lastUse ?? null,
});

const list = (): Command =>
  sessionCommand(
    'list',
    'list the keys of a tenant; a key itself is never shown again',
    async (session, options: Common & { readonly application?: string }) => {
      await session.upToDate();
      const { tenant: tenantId, application } = options;
      const tenant = await knownTenant(session, tenantId);
      if (application !== undefined) await knownApplication(session, tenantId, application);
      const deleted = (await applicationsOf(session, tenantId)).filter((one) => one.deleted_at !== undefined);
      const owners = {
        tenantDeleted: tenant.deleted_at !== undefined,
        deletedApplications: new Set(deleted.map((one) => one.id)),
      };
      const keys = (await keysOf(session, tenantId)).filter(
        (one) => application === undefined || one.application_id === application,
      );
      const lastUses = await session.app.keyUses.lastUses(tenantId);
      const rows = keys.map((one) => viewOf(one, owners, lastUses.get(one.id)));
      printMany(rows, options, 'There are no keys.');
    },
  )
    .addOption(tenantOption())
    .option('--application <uuid>', 'only those of this Application', uuid);

const revoke = (): Command =>
  sessionCommand(
    'revoke',
    'revoke a key: at once for writes, within a second for reads',
    async (session, keyId: string, options: Common) => {
      await session.write(options.tenant, revokeKey(keyId), options.actor);
      printOne({ key_id: keyId, status: 'revoked' }, options);
    },
  )
    .argument('<key-id>', 'the key', uuid)
    .addOption(tenantOption())
    .addOption(actorOption());

export const keyCommands = (): Command =>
  commandGroup('key', 'create, list and revoke the keys of Applications', [create(), list(), revoke()]);
