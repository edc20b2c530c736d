import { Command } from 'commander';
import { operatorActor } from '../app/operator';
import { isoNow } from '../async/clock';
import { findParked, parkedTenants } from '../projecting/parked-tenants';
import type { SetInfo } from '../read-models/read-models';
import type { App } from '../app/app';
import { commandGroup, option, uuid } from './arguments';
import type { ActorOptions, JsonOption, YesOption } from './arguments';
import { confirmedIrreversible } from './confirmation';
import { sessionCommand } from './session';
import { counted, printMany, printOne } from './output';
import { rebuildCommand } from './projections-rebuild-command';
import { verifyCommand } from './projections-verify-command';
import type { Io } from './io';

/** The sets of other versions of the program, and those of this one that are not live. */
const unusedSets = async ({ replay: { readModels } }: App): Promise<readonly SetInfo[]> =>
  (await readModels.list()).filter(({ version, isLive }) => version !== readModels.version || !isLive);

const removeAll = async (
  { replay: { readModels } }: App,
  unused: readonly SetInfo[],
): Promise<readonly string[]> => {
  const others = new Set(unused.map(({ version }) => version).filter((one) => one !== readModels.version));
  for (const version of others) await readModels.abandon(version);
  const removed: string[] = [];
  for (const { id } of unused) if (await readModels.remove(id)) removed.push(id);
  return removed;
};

const prune = (io: Io): Command =>
  sessionCommand(io, 'prune', async ({ app }, options: JsonOption & YesOption) => {
    const unused = await unusedSets(app);
    if (unused.length === 0) return printMany(io, [], options, 'There is nothing to prune.');
    const names = unused.map(({ id, version }) => `${id} of version ${version}`).join(', ');
    const what = `remove ${counted(unused.length, 'set')} of read models (${names})`;
    if (!(await confirmedIrreversible(io, what, options, 'Nothing was removed.'))) return;
    const removed = await removeAll(app, unused);
    printMany(
      io,
      removed.map((set) => ({ removed: set })),
      options,
      'Nothing was removed: they were in use within the last minute.',
    );
  })
    .description('remove read models that are no longer used, after confirmation')
    .addOption(option.yes());

/** Retries one parked tenant, or all, in the live set. */
const retryParked = async ({ log, streams, live, replay }: App, tenantId?: string): Promise<void> => {
  const { readFolding } = require('../projecting/replay') as typeof import('../projecting/replay');
  const { retryDue } = require('../projecting/retry-parked') as typeof import('../projecting/retry-parked');
  const { set } = await live.read();
  const isRequested = (one: string): boolean => tenantId === undefined || tenantId === one;
  await retryDue({ log, streams, set, folding: await readFolding(replay), isRequested });
};

const retry = (io: Io): Command =>
  sessionCommand(
    io,
    'retry',
    async ({ app, upToDate }, options: JsonOption & { readonly tenant?: string }) => {
      await upToDate();
      await retryParked(app, options.tenant);
      const parked: string[] = [];
      for await (const { tenant_id } of parkedTenants((await app.live.read()).set)) parked.push(tenant_id);
      printOne(io, { still_parked: parked }, options);
    },
  )
    .description('retry the parked tenants')
    .option('--tenant <uuid>', 'only this tenant', uuid);

const setEventAside = (io: Io): Command =>
  sessionCommand(
    io,
    'set-aside',
    async (session, eventId: string, options: ActorOptions & { readonly reason: string }) => {
      const { setAside } = require('../projecting/set-aside') as typeof import('../projecting/set-aside');
      const { app, configuration, upToDate } = session;
      await upToDate();
      const { log, streams, live } = app;
      const actor = operatorActor(options.actor ?? configuration.OPERATOR_ID);
      const { set } = await live.read();
      const input = { eventId, reason: options.reason, actor, at: isoNow() };
      const { tenant_id, cause } = await setAside({ log, streams, set }, input);
      await retryParked(app, tenant_id);
      const again = await findParked((await live.read()).set, tenant_id);
      const what = cause === 'missing_events' ? 'gap accepted' : 'event skipped';
      printOne(io, { event_id: eventId, tenant_id, what, parked_at: again?.event_id ?? null }, options);
    },
  )
    .description(
      'skip an event at which a tenant is parked, or accept that events before it are missing; the log keeps it',
    )
    .argument('<event-id>', 'the event', uuid)
    .requiredOption('--reason <text>', 'why, for the audit log')
    .addOption(option.actor());

export const projectionsCommands = commandGroup(
  'projections',
  'rebuild, verify and prune the read models, and release parked tenants',
  [rebuildCommand, prune, verifyCommand, retry, setEventAside],
);
