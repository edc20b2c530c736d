import { Command } from 'commander';
import { ledgerStatus } from '../app/status';
import { jsonOption } from './arguments';
import { atDesk } from './desk';
import { printJson, printRecord, printTable, say } from './output';

export const statusCommand = (): Command =>
  new Command('status')
    .description(
      'show the event log, how far the read models are, and what is parked; exit code 1 if a tenant is parked or unreadable',
    )
    .addOption(jsonOption())
    .action((options: { json?: boolean }) =>
      atDesk(async ({ app }) => {
        const status = await ledgerStatus(app);
        const incomplete = (await app.log.incompleteStreams?.()) ?? [];
        for (const { stream, events, lastRevision } of incomplete)
          say(
            `Events are missing from the log: the stream ${stream} has ${events} of the ${lastRevision + 1} events up to its last one. "tenant-ledger log verify" says which are missing.`,
          );
        const isBlocked = [status.decisions, ...status.projections].some(({ parked }) => parked.length > 0);
        if (isBlocked) process.exitCode = 1;
        if (options.json === true) return printJson(status);
        const { store, identity, head } = status.log;
        printRecord({ store, log: identity, head, projector: status.projector });
        const rows = status.projections.map(({ parked, lag_seconds, ...row }) => ({
          ...row,
          lag_seconds: lag_seconds.toFixed(1),
          parked: parked.length,
        }));
        process.stdout.write('\n');
        printTable(rows, '');
        const parked = [
          ...status.decisions.parked.map((tenant) => ({ in: 'decisions', ...tenant })),
          ...status.projections.flatMap(({ projection, parked: tenants }) =>
            tenants.map(({ tenant_id, event_id, position, reason }) => ({
              in: projection,
              tenant_id,
              event_id,
              position,
              reason,
            })),
          ),
        ];
        if (parked.length === 0) return;
        process.stdout.write('\nParked:\n');
        printTable(parked, '');
      }),
    );
