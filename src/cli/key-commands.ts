import { Command, Option } from 'commander';
import { newKey } from '../app/operator';
import { addKey, revokeKey } from '../domain/applications';
import { isExpired } from '../domain/authority';
import type { KeyDocument } from '../../projections/applications';
import { applicationsOf, knownApplication } from './application-commands';
import { actorOption, jsonOption, moment, tenantOption, uuid } from './arguments';
import { atDesk } from './desk';
import { collectedFrom, documentsOf } from './documents';
import { printMany, printOne } from './output';
import { knownTenant } from './tenant-commands';

interface Common {
  readonly tenant: string;
  readonly actor?: string;
  readonly json?: boolean;
}

/** What else makes a key useless: what it belongs to is deleted. */
interface Belongings {
  readonly tenantDeleted: boolean;
  readonly deletedApplications: ReadonlySet<string>;
}

const statusOf = (key: KeyDocument, { tenantDeleted, deletedApplications }: Belongings): string => {
  if (key.revoked_at !== undefined) return 'revoked';
  if (isExpired(key.expires_at, new Date().toISOString())) return 'expired';
  if (tenantDeleted) return 'tenant_deleted';
  return deletedApplications.has(key.application_id) ? 'application_deleted' : 'active';
};

const viewOf = (key: KeyDocument, belongings: Belongings, lastUse: string | undefined) => ({
  key_id: key.id,
  application_id: key.application_id,
  status: statusOf(key, belongings),
  created_at: key.created_at,
  expires_at: key.expires_at ?? null,
  revoked_at: key.revoked_at ?? null,
  last_used_at: lastUse ?? null,
});

export const keyCommands = (): Command => {
  const key = new Command('key').description('make, list and revoke the keys of Applications');
  key
    .command('create')
    .description('add a key to an Application; it is shown once')
    .addOption(tenantOption())
    .requiredOption('--application <uuid>', 'the Application', uuid)
    .addOption(new Option('--expires <time>', 'when it expires (default: never)').argParser(moment))
    .addOption(actorOption())
    .addOption(jsonOption())
    .action((options: Common & { application: string; expires?: string }) =>
      atDesk(async (desk) => {
        const { key: text, input } = newKey(options.tenant, options.expires);
        await desk.write(options.tenant, addKey(options.application, input), options.actor);
        const view = { application_id: options.application, key_id: input.keyId };
        printOne({ ...view, expires_at: options.expires ?? null, key: text }, options);
      }),
    );
  key
    .command('list')
    .description('list the keys of a tenant; a key itself is never shown again')
    .addOption(tenantOption())
    .option('--application <uuid>', 'only those of this Application', uuid)
    .addOption(jsonOption())
    .action((options: Common & { application?: string }) =>
      atDesk(async (desk) => {
        await desk.upToDate();
        const { tenant: tenantId, application } = options;
        const reader = desk.app.projecting.reader('applications');
        const tenant = await knownTenant(desk, tenantId);
        if (application !== undefined) await knownApplication(desk, tenantId, application);
        const deleted = (await applicationsOf(desk, tenantId)).filter((one) => one.deleted_at !== undefined);
        const belongings = {
          tenantDeleted: tenant.deleted_at !== undefined,
          deletedApplications: new Set(deleted.map((one) => one.id)),
        };
        const all = await collectedFrom(documentsOf<KeyDocument>(reader, 'keys', tenantId));
        const keys = all.filter((one) => application === undefined || one.application_id === application);
        const lastUses = await desk.app.keyUses.lastUses(tenantId);
        printMany(
          keys.map((one) => viewOf(one, belongings, lastUses.get(one.id))),
          options,
          'There are no keys.',
        );
      }),
    );
  key
    .command('revoke')
    .description('revoke a key: at once for writes, within a second for reads')
    .argument('<key-id>', 'the key', uuid)
    .addOption(tenantOption())
    .addOption(actorOption())
    .addOption(jsonOption())
    .action((keyId: string, options: Common) =>
      atDesk(async (desk) => {
        await desk.write(options.tenant, revokeKey(keyId), options.actor);
        printOne({ key_id: keyId, status: 'revoked' }, options);
      }),
    );
  return key;
};
