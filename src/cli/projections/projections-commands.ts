import { Command } from 'commander';
import { projections } from '../../../projections/projections';
import { operatorActor } from '../../app/operator';
import { isoNow } from '../../async/clock';
import { setAside } from '../../projecting/set-aside';
import { prune, unusedGenerations } from '../../projecting/prune';
import { generationName } from '../../read-models/read-models';
import {
  actorOption,
  commandGroup,
  uuid,
  yesOption,
  type ActorOptions,
  type JsonOption,
  type YesOption,
} from '../arguments';
import { confirmedIrreversible } from '../confirmation';
import { sessionCommand } from '../operator-session';
import { counted, printMany, printOne } from '../output';
import { rebuildCommand } from './rebuild-command';
import { verifyCommand } from './verify-command';
import type { Io } from '../io';

const pruneUnused = (io: Io): Command =>
  sessionCommand(io, 'prune', async ({ app }, options: JsonOption & YesOption) => {
    const { readModels } = app.replay;
    const unused = await unusedGenerations(readModels, projections);
    if (unused.length === 0) return printMany(io, [], options, 'There is nothing to prune.');
    const names = unused.map(generationName).join(', ');
    const what = `remove ${counted(unused.length, 'generation')} (${names})`;
    if (!(await confirmedIrreversible(io, what, options, 'Nothing was removed.'))) return;
    const removed = await prune(readModels, projections, unused);
    printMany(
      io,
      removed.map((generation) => ({ removed: generation })),
      options,
    );
  })
    .description('remove generations that are no longer used, after confirmation')
    .addOption(yesOption());

const retry = (io: Io): Command =>
  sessionCommand(io, 'retry', async ({ app }, options: JsonOption & { readonly tenant?: string }) =>
    printOne(io, { retry: await app.projecting.retryParked(options.tenant) }, options),
  )
    .description('retry the parked tenants')
    .option('--tenant <uuid>', 'only this tenant', uuid);

const setEventAside = (io: Io): Command =>
  sessionCommand(
    io,
    'set-aside',
    async ({ app, configuration }, eventId: string, options: ActorOptions & { readonly reason: string }) => {
      const { log, streams, projecting } = app;
      const actor = operatorActor(options.actor ?? configuration.OPERATOR_ID);
      const outcome = await setAside(
        { log, streams, live: projecting.live },
        { eventId, reason: options.reason, actor, at: isoNow() },
      );
      const retried = await projecting.retryParked(outcome.tenantId);
      const view = { event_id: eventId, tenant_id: outcome.tenantId, projections: outcome.skipped };
      const gaps = outcome.gapAccepted.length === 0 ? {} : { gap_accepted: outcome.gapAccepted };
      printOne(io, { ...view, ...gaps, retry: retried }, options);
    },
  )
    .description(
      'skip an event at which a tenant is parked, or accept that events before it are missing; the log keeps it',
    )
    .argument('<event-id>', 'the event', uuid)
    .requiredOption('--reason <text>', 'why, for the audit log')
    .addOption(actorOption());

export const projectionsCommands = (io: Io): Command =>
  commandGroup('projections', 'rebuild, verify and prune the read models, and release parked tenants', [
    rebuildCommand(io),
    pruneUnused(io),
    verifyCommand(io),
    retry(io),
    setEventAside(io),
  ]);
