import { Command } from 'commander';
import { operatorActor } from '../app/operator';
import { projections } from '../../projections/projections';
import { parkedTenants, setAside } from '../projecting/parking';
import { prune, unusedGenerations } from '../projecting/prune';
import { rollback } from '../projecting/rebuild';
import { generationName } from '../read-models/read-models';
import { actorOption, jsonOption, uuid } from './arguments';
import { confirmed } from './confirmation';
import { atDesk, type Desk } from './desk';
import { printMany, printOne, say } from './output';
import { chosen, rebuildAll, verifyAll, type RebuildArguments } from './projections-replay';
import { projectionsStatus } from './projections-status';

const pruneUnused = async ({ app }: Desk, options: { yes?: boolean; json?: boolean }): Promise<void> => {
  const { readModels } = app.replay;
  const unused = await unusedGenerations(readModels, projections);
  const rows = unused.map((id) => ({ generation: generationName(id) }));
  if (unused.length === 0) return printMany([], options, 'There is nothing to prune.');
  if (options.yes !== true) {
    printMany(rows, options, '');
    if (!(await confirmed(`Remove ${unused.length} generations?`))) {
      say('Nothing was removed. Give --yes to remove them without being asked.');
      process.exitCode = 1;
      return;
    }
  }
  const removed = await prune(readModels, projections, unused);
  printMany(
    removed.map((generation) => ({ removed: generation })),
    options,
    '',
  );
};

const listParked = async ({ app }: Desk, options: { json?: boolean }): Promise<void> => {
  const rows = [];
  for (const { projector, generation } of app.projecting.live)
    for await (const { tenant_id, event_id, event_type, position, since, reason } of parkedTenants(
      generation,
    ))
      rows.push({ projection: projector.name, tenant_id, event_id, event_type, position, since, reason });
  printMany(rows, options, 'No tenant is parked.');
};

const aside = async (
  desk: Desk,
  eventId: string,
  options: { reason: string; actor?: string; json?: boolean },
) => {
  const { app, configuration } = desk;
  const actor = operatorActor(options.actor ?? configuration.OPERATOR_ID);
  const { log, streams, projecting } = app;
  const done = await setAside(
    { log, streams, live: projecting.live },
    { eventId, reason: options.reason, actor, at: new Date().toISOString() },
  );
  const retry = await projecting.retryParked(done.tenantId);
  const view = { event_id: eventId, tenant_id: done.tenantId, projections: done.passedOver };
  const gaps = done.gapAccepted.length === 0 ? {} : { gap_accepted: done.gapAccepted };
  printOne({ ...view, ...gaps, retry }, options);
};

export const projectionsCommands = (): Command => {
  const command = new Command('projections').description(
    'see, rebuild, verify, switch and roll back the read models',
  );
  command
    .command('status')
    .description(
      'show every generation: position, lag, rate, parked tenants, who projects, running rebuilds; exit code 1 if a tenant is parked',
    )
    .addOption(jsonOption())
    .action((options: { json?: boolean }) => atDesk((desk) => projectionsStatus(desk, options)));
  command
    .command('rebuild')
    .description('fill a fresh generation beside the live one, compare them, and switch to it')
    .argument('[names...]', 'the projections')
    .option('--all', 'all of them')
    .option('--if-equal', 'switch only if the rebuilt one equals the live one')
    .option('--accept-parked', 'switch although it parks a tenant that the live one does not park')
    .option('--dry-run', 'only say what would be done')
    .addOption(jsonOption())
    .action((names: string[], options: RebuildArguments, self: Command) => {
      if (names.length === 0 && options.all !== true)
        self.error('error: name the projections to rebuild, or give --all');
      return rebuildAll(names, options);
    });
  command
    .command('rollback')
    .description('go back to the generation before the last switch')
    .argument('<name>', 'the projection')
    .addOption(jsonOption())
    .action((name: string, options: { json?: boolean }) =>
      atDesk(async ({ app }) => {
        const [projector] = chosen([name]);
        if (projector !== undefined)
          printOne({ projection: name, live: await rollback(app.replay.readModels, projector) }, options);
      }),
    );
  command
    .command('prune')
    .description('remove generations that are no longer used, after asking')
    .option('--yes', 'do not ask')
    .addOption(jsonOption())
    .action((options: { yes?: boolean; json?: boolean }) => atDesk((desk) => pruneUnused(desk, options)));
  command
    .command('verify')
    .description(
      'replay into a scratch store and compare with the live read models; exit code 1 if they differ, events are missing or a tenant is parked',
    )
    .argument('[names...]', 'the projections (default: all)')
    .option('--tenant <uuid>', 'only this tenant', uuid)
    .addOption(jsonOption())
    .action((names: string[], options: { tenant?: string; json?: boolean }) => verifyAll(names, options));
  command
    .command('parked')
    .description('list the tenants that wait behind an event that could not be projected')
    .addOption(jsonOption())
    .action((options: { json?: boolean }) => atDesk((desk) => listParked(desk, options)));
  command
    .command('retry')
    .description('try the parked tenants again')
    .option('--tenant <uuid>', 'only this tenant', uuid)
    .addOption(jsonOption())
    .action((options: { tenant?: string; json?: boolean }) =>
      atDesk(async ({ app }) =>
        printOne({ retry: await app.projecting.retryParked(options.tenant) }, options),
      ),
    );
  command
    .command('set-aside')
    .description(
      'pass over an event at which a tenant is parked, or accept that events before it are missing; the log keeps it',
    )
    .argument('<event-id>', 'the event', uuid)
    .requiredOption('--reason <text>', 'why, for the audit log')
    .addOption(actorOption())
    .addOption(jsonOption())
    .action((eventId: string, options: { reason: string; actor?: string; json?: boolean }) =>
      atDesk((desk) => aside(desk, eventId, options)),
    );
  return command;
};
