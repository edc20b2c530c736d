import type { Command } from 'commander';
import type { StoredKey } from '../../projections/applications';
import { findKeyDays, findLastUse, type KeyDayView } from '../../projections/key-days';
import { isoNow } from '../async/clock';
import { addKey, revokeKey } from '../domain/application-keys';
import { keyStatusIn } from '../domain/authority';
import type { Key } from '../domain/tenant';
import { fault } from '../fault';
import { newKey } from '../ledger/api-key';
import { commandGroup, moment, option, uuid, type TenantOptions } from './arguments';
import type { Io } from './io';
import { notTheKey, readKey, type GivenKey } from './key-input';
import { keyViewsOf, knownApplication } from './lookups';
import { notice, printJson, printMany, printOne, printRecord, printTable } from './output';
import { sessionCommand, type OperatorSession } from './session';

interface CreateOptions extends TenantOptions {
  readonly application: string;
  readonly expires?: string;
  readonly name?: string;
}

const create = (io: Io): Command =>
  sessionCommand(io, 'create', async (session, options: CreateOptions) => {
    const { tenant, application, expires, name } = options;
    const { key, input } = newKey(tenant, { expiresAt: expires, name });
    await session.write(tenant, addKey(application, input), options.actor);
    const view = { application_id: application, key_id: input.keyId, name: name ?? null };
    printOne(io, { ...view, expires_at: expires ?? null, key }, options);
  })
    .description('add a key to an Application; it is shown once')
    .addOption(option.tenant())
    .requiredOption('--application <uuid>', 'the Application', uuid)
    .option('--name <name>', 'its name, 1 to 200 characters')
    .option('--expires <time>', 'when it expires (default: never)', moment)
    .addOption(option.actor());

const list = (io: Io): Command =>
  sessionCommand(io, 'list', async (session, options: TenantOptions & { readonly application?: string }) => {
    await session.upToDate();
    const { tenant, application } = options;
    if (application !== undefined) await knownApplication(session, tenant, application);
    const keys = await keyViewsOf(session, tenant);
    const wanted = keys.filter(({ application_id: of }) => application === undefined || of === application);
    printMany(io, wanted, options, 'There are no keys.');
  })
    .description('list the keys of a tenant; a key itself is never shown again')
    .addOption(option.tenant())
    .option('--application <uuid>', 'only those of this Application', uuid);

/** `getTenant 12, listEvents 2`. */
const countsText = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');

const dayRow = ({ operations, refusals, ...day }: KeyDayView) => {
  return { ...day, operations: countsText(operations), refusals: countsText(refusals) };
};

const show = (io: Io): Command =>
  sessionCommand(io, 'show', async (session, id: string, options: TenantOptions) => {
    await session.upToDate();
    const { tenant } = options;
    const key = (await keyViewsOf(session, tenant)).find(({ key_id }) => key_id === id);
    if (key === undefined) throw fault('key_not_found', `Tenant ${tenant} has no key ${id}.`);
    const uses = await findKeyDays((await session.app.live.look()).set, tenant, id, isoNow());
    if (options.json === true) return printJson(io, { ...key, uses });
    printRecord(io, key);
    printTable(io, uses.map(dayRow));
    if (uses.length === 0) notice(io, 'It was not used in the last 30 days, as far as that was recorded.');
  })
    .description(
      'show a key and what it was used for on each of the last 30 days (UTC), as far as it is in the log',
    )
    .argument('<key-id>', 'the id of the key', uuid)
    .addOption(option.tenant());

/** A key, its Application and its tenant, according to the tenant's own stream. */
const mustFind = (session: OperatorSession, { tenantId, digest }: GivenKey) =>
  session.ask(tenantId, (tenant) => {
    const key = tenant.status === 'absent' ? undefined : tenant.keys.get(digest);
    if (tenant.status === 'absent' || key === undefined)
      throw fault('key_not_found', 'It has the form of a key, but this event log has no such key.');
    const { id, name, applications } = tenant;
    const { status } = keyStatusIn(tenant, digest, isoNow());
    return { tenant: { id, name }, key, status, application: applications.get(key.application_id) };
  });

/** Of a revoked key, only the read model still has its name and times. */
const detailsOf = async ({ app }: OperatorSession, tenantId: string, key: Key) => {
  if (!key.revoked) return key;
  const found = await (await app.live.look()).set.get(tenantId, 'keys', key.id);
  return (found ?? {}) as Partial<StoredKey>;
};

const find = (io: Io): Command =>
  sessionCommand(io, 'find', async (session, _: undefined, options: TenantOptions) => {
    const { tenant, key, status, application } = await mustFind(session, await readKey(io, 'key find'));
    const { id, application_id } = key;
    const { name, created_at, expires_at } = await detailsOf(session, tenant.id, key);
    const lastUse = await findLastUse((await session.app.live.look()).set, tenant.id, id);
    const view = {
      tenant_id: tenant.id,
      tenant_name: tenant.name,
      application_id,
      application_name: application?.name ?? null,
      application_type: application?.type ?? null,
      permissions: application?.permissions ?? [],
      key_id: id,
      key_name: name ?? null,
      status: status === 'valid' ? 'active' : status,
      created_at: created_at ?? null,
      expires_at: expires_at ?? null,
      last_used_at: lastUse ?? null,
    };
    printOne(io, view, options);
  })
    .description(
      'find the owner of the key on stdin, for example in the report of a scanner; it is not printed',
    )
    // Without a description, the help does not show it.
    .argument('[key]', undefined, notTheKey('key find'))
    .usage('[options] < FILE');

type RevokeOptions = Partial<TenantOptions>;

/** Takes the key's id and tenant from the arguments, or both from the key on stdin. */
const keyToRevoke = async (
  session: OperatorSession,
  keyId: string | undefined,
  { tenant }: RevokeOptions,
) => {
  if (keyId !== undefined && tenant !== undefined) return { tenantId: tenant, keyId };
  if (keyId !== undefined) throw fault('wrong_usage', 'A key that is named by its id needs --tenant.');
  const given = await mustFind(session, await readKey(session.io, 'key revoke'));
  return { tenantId: given.tenant.id, keyId: given.key.id };
};

const revoke = (io: Io): Command =>
  sessionCommand(io, 'revoke', async (session, named: string | undefined, options: RevokeOptions) => {
    const { tenantId, keyId } = await keyToRevoke(session, named, options);
    await session.write(tenantId, revokeKey(keyId), options.actor);
    printOne(io, { key_id: keyId, status: 'revoked' }, options);
  })
    .description(
      'revoke a key, named by its id or given on stdin: at once for writes, within a second for reads',
    )
    .argument(
      '[key-id]',
      'the id of the key; left out: the key itself is read from stdin',
      notTheKey('key revoke', uuid),
    )
    .option('--tenant <uuid>', 'the tenant; needed with the id of a key', uuid)
    .addOption(option.actor());

const KEYS = 'create, list, show, find and revoke the keys of Applications';
export const keyCommands = commandGroup('key', KEYS, [create, list, show, find, revoke]);
