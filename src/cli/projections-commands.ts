import { Command } from 'commander';
import { projections } from '../../projections/projections';
import { operatorActor } from '../app/operator';
import { parkedTenants, setAside } from '../projecting/parking';
import { prune, unusedGenerations } from '../projecting/prune';
import { rollback } from '../projecting/rebuild';
import { generationName } from '../read-models/read-models';
import { actorOption, jsonOption, uuid, yesOption } from './arguments';
import { confirmed } from './confirmation';
import { inSession, type OperatorSession } from './operator-session';
import { counted, printMany, printOne } from './output';
import { chosenProjectors } from './projections-arguments';
import { rebuildCommand } from './projections-rebuild-command';
import { statusCommand } from './projections-status-command';
import { verifyCommand } from './projections-verify-command';

interface Format {
  readonly json?: boolean;
}

const rollbackCommand = (): Command =>
  new Command('rollback')
    .description('go back to the generation before the last switch')
    .argument('<name>', 'the projection')
    .addOption(jsonOption())
    .action((name: string, options: Format) =>
      inSession(async ({ app }) => {
        for (const projector of chosenProjectors([name]))
          printOne({ projection: name, live: await rollback(app.replay.readModels, projector) }, options);
      }),
    );

interface PruneOptions extends Format {
  readonly yes?: boolean;
}

const pruneUnused = async ({ app }: OperatorSession, options: PruneOptions): Promise<void> => {
  const { readModels } = app.replay;
  const unused = await unusedGenerations(readModels, projections);
  if (unused.length === 0) return printMany([], options, 'There is nothing to prune.');
  if (options.yes !== true) {
    const rows = unused.map((id) => ({ generation: generationName(id) }));
    printMany(rows, options);
    const otherwise = 'Nothing was removed. Give --yes to remove them without confirmation.';
    if (!(await confirmed(`Remove ${counted(unused.length, 'generation')}?`, otherwise))) return;
  }
  const removed = await prune(readModels, projections, unused);
  printMany(
    removed.map((generation) => ({ removed: generation })),
    options,
  );
};

const pruneCommand = (): Command =>
  new Command('prune')
    .description('remove generations that are no longer used, after confirmation')
    .addOption(yesOption())
    .addOption(jsonOption())
    .action((options: PruneOptions) => inSession((session) => pruneUnused(session, options)));

const listParked = async ({ app }: OperatorSession, options: Format): Promise<void> => {
  const rows = [];
  for (const { projector, generation } of app.projecting.live)
    for await (const tenant of parkedTenants(generation)) {
      const { tenant_id, event_id, event_type, position, since, reason } = tenant;
      rows.push({ projection: projector.name, tenant_id, event_id, event_type, position, since, reason });
    }
  printMany(rows, options, 'No tenant is parked.');
};

const parkedCommand = (): Command =>
  new Command('parked')
    .description('list the tenants that wait behind an event that could not be projected')
    .addOption(jsonOption())
    .action((options: Format) => inSession((session) => listParked(session, options)));

const retryCommand = (): Command =>
  new Command('retry')
    .description('try the parked tenants again')
    .option('--tenant <uuid>', 'only this tenant', uuid)
    .addOption(jsonOption())
    .action((options: Format & { tenant?: string }) =>
      inSession(async ({ app }) =>
        printOne({ retry: await app.projecting.retryParked(options.tenant) }, options),
      ),
    );

interface SetAsideOptions extends Format {
  readonly reason: string;
  readonly actor?: string;
}

const setEventAside = async (
  { app, configuration }: OperatorSession,
  eventId: string,
  options: SetAsideOptions,
): Promise<void> => {
  const { log, streams, projecting } = app;
  const actor = operatorActor(options.actor ?? configuration.OPERATOR_ID);
  const done = await setAside(
    { log, streams, live: projecting.live },
    { eventId, reason: options.reason, actor, at: new Date().toISOString() },
  );
  const retry = await projecting.retryParked(done.tenantId);
  const view = { event_id: eventId, tenant_id: done.tenantId, projections: done.passedOver };
  const gaps = done.gapAccepted.length === 0 ? {} : { gap_accepted: done.gapAccepted };
  printOne({ ...view, ...gaps, retry }, options);
};

const setAsideCommand = (): Command =>
  new Command('set-aside')
    .description(
      'pass over an event at which a tenant is parked, or accept that events before it are missing; the log keeps it',
    )
    .argument('<event-id>', 'the event', uuid)
    .requiredOption('--reason <text>', 'why, for the audit log')
    .addOption(actorOption())
    .addOption(jsonOption())
    .action((eventId: string, options: SetAsideOptions) =>
      inSession((session) => setEventAside(session, eventId, options)),
    );

export const projectionsCommands = (): Command =>
  new Command('projections')
    .description('inspect, rebuild, verify, switch and roll back the read models')
    .addCommand(statusCommand())
    .addCommand(rebuildCommand())
    .addCommand(rollbackCommand())
    .addCommand(pruneCommand())
    .addCommand(verifyCommand())
    .addCommand(parkedCommand())
    .addCommand(retryCommand())
    .addCommand(setAsideCommand());
