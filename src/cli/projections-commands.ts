import type { Command } from 'commander';
import type { App } from '../app/app';
import { operatorActor } from '../app/operator';
import { isoNow } from '../async/clock';
import type { Difference } from '../projecting/compare';
import { parkedTenants } from '../projecting/parked-tenants';
import type { Rebuilt, RebuildStep } from '../projecting/rebuild';
import type { Verified } from '../projecting/verify';
import type { ReadModels, SetInfo } from '../read-models/read-models';
import { commandGroup, option, uuid, type ActorOptions, type JsonOption, type YesOption } from './arguments';
import { confirmedIrreversible } from './confirmation';
import { FAILED } from './failure';
import type { Io } from './io';
import { counted, notice, printJson, printMany, printOne } from './output';
import { withProgress, type ProgressLine } from './progress';
import { sessionCommand, type OperatorSession } from './session';

/** Which document differs, and how, for a terminal. */
const differenceText = ({ kind, tenantId, collection, key, live, replayed }: Difference): string => {
  const which = JSON.stringify({ kind, tenant_id: tenantId, collection, key });
  return `${which}\n  live:     ${JSON.stringify(live)}\n  replayed: ${JSON.stringify(replayed)}`;
};

const showRebuild = ({ show, showStep }: ProgressLine, at: RebuildStep): void =>
  at.step === 'building' ? showStep('', at.done, at.total) : show(at.step);

const rebuiltView = ({ set, comparison, parked, events }: Rebuilt) => ({
  set: set.id,
  events,
  documents_compared: comparison?.documents ?? null,
  differences: comparison?.differences ?? null,
  parked,
});

const MAX_REBUILD_DIFFERENCES = 20;

/** Shows the first differences. `verify` lists all. */
const showFirst = (io: Io) => {
  let count = 0;
  return (difference: Difference): void => {
    count += 1;
    if (count <= MAX_REBUILD_DIFFERENCES) notice(io, differenceText(difference));
    if (count === MAX_REBUILD_DIFFERENCES + 1)
      notice(io, 'There are more: tenant-ledger projections verify lists all of them.');
  };
};

interface RebuildOptions extends JsonOption {
  readonly acceptDifferences?: boolean;
}

const rebuildIn = async ({ io, app }: OperatorSession, options: RebuildOptions): Promise<void> => {
  const { rebuild } = require('../projecting/rebuild') as typeof import('../projecting/rebuild');
  const { acceptDifferences = false, json } = options;
  const onDifference = json === true ? () => undefined : showFirst(io);
  const rebuilt = await withProgress(io, 'Rebuilding', (line) =>
    rebuild(app, { acceptDifferences, onStep: (at) => showRebuild(line, at), onDifference }),
  );
  printOne(io, rebuiltView(rebuilt), options);
};

/** It tolerates read models that do not match the log: it repairs them. */
const rebuildSet = (io: Io): Command =>
  sessionCommand(io, 'rebuild', rebuildIn, 'repair')
    .description(
      'build new read models beside the live ones, compare them, and switch to them; if they differ or park another tenant, the live ones stay, and the exit code is 4',
    )
    .option('--accept-differences', 'switch all the same');

/** Beyond this, differences are only counted in the JSON report. */
const MAX_LISTED_DIFFERENCES = 10_000;

interface TenantOption extends JsonOption {
  readonly tenant?: string;
}

const isSound = ({ differences, parked, gaps }: Verified): boolean =>
  differences === 0 && parked.length === 0 && gaps.length === 0;

const listed = ({ kind, tenantId, collection, key, live, replayed }: Difference) => {
  const documents = { live: live ?? null, replayed: replayed ?? null };
  return { kind, tenant_id: tenantId, collection, key, ...documents };
};

const printVerified = (io: Io, report: Verified, options: JsonOption): void => {
  for (const { tenant_id, event_id, reason } of report.gaps)
    notice(io, `Tenant ${tenant_id}, event ${event_id}. ${reason}`);
  if (report.parked.length > 0)
    notice(io, 'Tenants are parked: tenant-ledger status says at which events, and why.');
  printOne(io, { ...report, gaps: report.gaps.map(({ tenant_id }) => tenant_id) }, options);
};

const verifySet = (io: Io): Command =>
  sessionCommand(io, 'verify', async ({ app, upToDate }, options: TenantOption) => {
    const { withScratch } = require('../app/adapters') as typeof import('../app/adapters');
    const { verify } = require('../projecting/verify') as typeof import('../projecting/verify');
    await upToDate();
    const differences: unknown[] = [];
    const onDifference = (difference: Difference): void => {
      if (options.json !== true) notice(io, differenceText(difference));
      else if (differences.length < MAX_LISTED_DIFFERENCES) differences.push(listed(difference));
    };
    const verifying = (scratch: ReadModels, { show }: ProgressLine): Promise<Verified> => {
      const onProgress = (events: number, documents: number): void =>
        show(documents === 0 ? `${events} events replayed` : `${documents} documents compared`);
      return verify(app, scratch, { tenantId: options.tenant, onDifference, onProgress });
    };
    const report = await withScratch((scratch) =>
      withProgress(io, 'Verifying', (line) => verifying(scratch, line)),
    );
    if (!isSound(report)) io.exitCode = FAILED;
    if (options.json !== true) return printVerified(io, report, options);
    const gaps = report.gaps.map(({ tenant_id, event_id, reason }) => ({ tenant_id, event_id, reason }));
    printJson(io, { ...report, gaps, documents_that_differ: differences });
  })
    .description(
      'replay into a scratch store and compare with the live read models; exit code 1 if they differ, events are missing or a tenant is parked',
    )
    .option('--tenant <uuid>', 'only this tenant', uuid);

/** The sets of other versions of the program, and those of this one that are not live. */
const unusedSets = async ({ readModels }: App): Promise<readonly SetInfo[]> =>
  (await readModels.list()).filter(({ version, isLive }) => version !== readModels.version || !isLive);

const removeAll = async ({ readModels }: App, unused: readonly SetInfo[]): Promise<readonly string[]> => {
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
    const removed = (await removeAll(app, unused)).map((set) => ({ removed: set }));
    printMany(io, removed, options, 'Nothing was removed: they were in use within the last minute.');
  })
    .description('remove read models that are no longer used, after confirmation')
    .addOption(option.yes());

const retryParked = async (app: App, tenantId?: string): Promise<void> => {
  const { tenantProjection } =
    require('../projecting/project-tenants') as typeof import('../projecting/project-tenants');
  const { retryDue } =
    require('../projecting/parked-tenants') as typeof import('../projecting/parked-tenants');
  const { set } = await app.live.look();
  const isRequested = (one: string): boolean => tenantId === undefined || tenantId === one;
  await retryDue(tenantProjection(app, set), isRequested);
};

const retry = (io: Io): Command =>
  sessionCommand(io, 'retry', async ({ app, upToDate }, options: TenantOption) => {
    await upToDate();
    await retryParked(app, options.tenant);
    const parked: string[] = [];
    for await (const { tenant_id } of parkedTenants((await app.live.look()).set)) parked.push(tenant_id);
    printOne(io, { still_parked: parked }, options);
  })
    .description('retry the parked tenants')
    .option('--tenant <uuid>', 'only this tenant', uuid);

interface SetAsideOptions extends ActorOptions {
  readonly reason: string;
}

const setEventAside = (io: Io): Command =>
  sessionCommand(io, 'set-aside', async (session, eventId: string, options: SetAsideOptions) => {
    const { setAside } =
      require('../projecting/parked-tenants') as typeof import('../projecting/parked-tenants');
    const { app, configuration, upToDate } = session;
    await upToDate();
    const { log, streams, live } = app;
    const actor = operatorActor(options.actor ?? configuration.OPERATOR_ID);
    const { set } = await live.look();
    const input = { eventId, reason: options.reason, actor, at: isoNow() };
    const { tenant_id, cause } = await setAside({ log, streams, set }, input);
    await retryParked(app, tenant_id);
    const { parked: again } = await live.query(tenant_id, async () => undefined);
    const what = cause === 'missing_events' ? 'gap accepted' : 'event skipped';
    printOne(io, { event_id: eventId, tenant_id, what, parked_at: again?.event_id ?? null }, options);
  })
    .description('skip an event at which a tenant is parked, or accept that events before it are missing')
    .argument('<event-id>', 'the event', uuid)
    .requiredOption('--reason <text>', 'why, for the audit log')
    .addOption(option.actor());

const PROJECTIONS = 'rebuild, verify and prune the read models, and release parked tenants';
const commands = [rebuildSet, prune, verifySet, retry, setEventAside];
export const projectionsCommands = commandGroup('projections', PROJECTIONS, commands);
