import { Command, Option } from 'commander';
import { addKey, revokeKey } from '../domain/applications';
import { isExpired } from '../domain/authority';
import { listKeys, type KeyDocument } from '../../projections/applications';
import { freshKey } from './application-commands';
import { actorOption, jsonOption, moment, tenantOption, uuid } from './arguments';
import { atDesk } from './desk';
import { printMany, printOne } from './output';

interface Common {
  readonly tenant: string;
  readonly actor?: string;
  readonly json?: boolean;
}

const statusOf = (key: KeyDocument, now: string): string => {
  if (key.revoked_at !== undefined) return 'revoked';
  return isExpired(key.expires_at, now) ? 'expired' : 'active';
};

const viewOf = (key: KeyDocument) => ({
  key_id: key.id,
  application_id: key.application_id,
  status: statusOf(key, new Date().toISOString()),
  created_at: key.created_at,
  expires_at: key.expires_at ?? null,
  revoked_at: key.revoked_at ?? null,
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
        const { key: text, wish } = freshKey(options.tenant, options.expires);
        await desk.write(options.tenant, addKey(options.application, wish), options.actor);
        const view = { application_id: options.application, key_id: wish.keyId };
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
        const keys = await listKeys(
          desk.app.projecting.reader('applications'),
          options.tenant,
          options.application,
        );
        printMany(keys.map(viewOf), options, 'There are no keys.');
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
