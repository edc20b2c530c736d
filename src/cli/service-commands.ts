import type { Command } from 'commander';
import { randomUUID } from 'node:crypto';
import { isoNow } from '../async/clock';
import { serviceRights, type ServiceRight } from '../domain/events';
import * as domain from '../domain/services';
import { fault } from '../fault';
import { newServiceKey } from '../ledger/api-key';
import { commandGroup, moment, option, parser, uuid, type ActorOptions, type JsonOption } from './arguments';
import type { Io } from './io';
import { notTheKey, readServiceKey } from './key-input';
import { printJson, printMany, printOne, printRecord, printTable } from './output';
import { sessionCommand, type OperatorSession } from './session';

const isRight = (text: string): text is ServiceRight => serviceRights.includes(text as ServiceRight);

const rights = parser(`It must be one or several of ${serviceRights.join(', ')}, with commas.`, (text) => {
  const named = [...new Set(text.split(',').map((part) => part.trim()))];
  return named.every(isRight) ? named : undefined;
});

const keysOf = (known: domain.Services, id: string) =>
  [...known.keys.values()]
    .filter(({ serviceId }) => serviceId === id)
    .map((key) => ({
      key_id: key.id,
      status: domain.serviceKeyStatus(known, key, isoNow()),
      created_at: key.createdAt,
      expires_at: key.expiresAt ?? null,
      revoked_at: key.revokedAt ?? null,
    }));

const viewOf = (known: domain.Services, { id, name, may, createdAt, revokedAt }: domain.Service) => ({
  service_id: id,
  name,
  may,
  status: revokedAt === undefined ? 'active' : 'revoked',
  live_keys: keysOf(known, id).filter(({ status }) => status === 'active').length,
  created_at: createdAt,
  revoked_at: revokedAt ?? null,
});

interface KeyOptions extends ActorOptions {
  readonly expires?: string;
}
interface CreateOptions extends KeyOptions {
  readonly name: string;
  readonly may: readonly ServiceRight[];
}

const createIn = async (session: OperatorSession, options: CreateOptions): Promise<void> => {
  const { name, may, expires, actor } = options;
  const { key, input } = newServiceKey(expires);
  const id = randomUUID();
  await session.writeServices(domain.addService({ id, name, may }, input), actor);
  const view = { service_id: id, name, may, key_id: input.keyId, expires_at: expires ?? null };
  printOne(session.io, { ...view, key }, options);
};

const create = (io: Io): Command =>
  sessionCommand(io, 'create', createIn, 'create')
    .description('create a service with its first key, which is shown once')
    .requiredOption('--name <name>', 'its name, 1 to 200 characters: facts that it reports carry it')
    .requiredOption('--may <rights>', 'what it may: facts, verify or facts,verify', rights)
    .option('--expires <time>', 'when its key expires (default: never)', moment)
    .addOption(option.actor());

const list = (io: Io): Command =>
  sessionCommand(io, 'list', async (session, options: JsonOption) => {
    const known = await session.services();
    const rows = [...known.services.values()].map((service) => viewOf(known, service));
    printMany(io, rows, options, 'There are no services.');
  }).description('list all services, including revoked ones');

const show = (io: Io): Command =>
  sessionCommand(io, 'show', async (session, id: string, options: JsonOption) => {
    const known = await session.services();
    const service = known.services.get(id);
    if (service === undefined) throw fault('service_not_found', `There is no service ${id}.`);
    const keys = keysOf(known, id);
    if (options.json === true) return printJson(io, { ...viewOf(known, service), keys });
    printRecord(io, viewOf(known, service));
    printTable(io, keys);
  })
    .description('show a service and its keys; a key itself is never shown again')
    .argument('<service-id>', 'the service', uuid);

const revoke = (io: Io): Command =>
  sessionCommand(io, 'revoke', async (session, id: string, options: ActorOptions) => {
    await session.writeServices(domain.revokeService(id), options.actor);
    printOne(io, { service_id: id, status: 'revoked' }, options);
  })
    .description('revoke a service with all its keys, within a second; it cannot be undone')
    .argument('<service-id>', 'the service', uuid)
    .addOption(option.actor());

const addKey = (io: Io): Command =>
  sessionCommand(io, 'add', async (session, id: string, options: KeyOptions) => {
    const { expires, actor } = options;
    const { key, input } = newServiceKey(expires);
    await session.writeServices(domain.addServiceKey(id, input), actor);
    printOne(io, { service_id: id, key_id: input.keyId, expires_at: expires ?? null, key }, options);
  })
    .description('add a key to a service; it is shown once, and the others stay as they are')
    .argument('<service-id>', 'the service', uuid)
    .option('--expires <time>', 'when it expires (default: never)', moment)
    .addOption(option.actor());

const keyOnStdin = async (session: OperatorSession): Promise<string> => {
  const digest = await readServiceKey(session.io, 'service key revoke');
  const key = (await session.services()).keys.get(digest);
  if (key === undefined)
    throw fault('key_not_found', 'It has the form of a key, but this event log has no such key.');
  return key.id;
};

const revokeKey = (io: Io): Command =>
  sessionCommand(io, 'revoke', async (session, named: string | undefined, options: ActorOptions) => {
    const keyId = named ?? (await keyOnStdin(session));
    await session.writeServices(domain.revokeServiceKey(keyId), options.actor);
    printOne(io, { key_id: keyId, status: 'revoked' }, options);
  })
    .description('revoke the key of a service, named by its id or given on stdin, within a second')
    .argument('[key-id]', 'left out: the key is read from stdin', notTheKey('service key revoke', uuid))
    .addOption(option.actor());

export const serviceCommands = commandGroup(
  'service',
  'create, list, show and revoke services, which report facts and have keys verified',
  [create, list, show, revoke, commandGroup('key', 'add and revoke keys of services', [addKey, revokeKey])],
);
