import { Command } from 'commander';
import { pause } from '../async/clock';
import { walkLogs, type SpecifiedLogFilter } from '../../projections/log-pages';
import { logView, type LogRow } from '../../projections/logs';
import { bound, jsonOption, mustBeInOrder, tenantOption, type JsonOption } from './arguments';
import { FAILED } from './failure';
import { knownTenant } from './lookups';
import { inSession } from './operator-session';
import { isOutputLost, notice, untilInterrupted, visible, writeOut } from './output';
import type { Io } from './io';

interface Options extends JsonOption {
  readonly tenant: string;
  readonly entityType?: string;
  readonly entityId?: string;
  readonly since?: string;
  readonly until?: string;
  readonly follow?: boolean;
}

const PAGE_SIZE = 500;
const POLL_MS = 200;

const filterOf = ({ entityType, entityId, since, until }: Options): SpecifiedLogFilter => ({
  entityType: entityType?.toLowerCase(),
  entityId,
  start: since,
  end: until,
});

const readable = (row: LogRow): string => {
  const actor = row.actor_id === undefined ? 'somebody' : `${row.actor_type} ${row.actor_id}`;
  const { created_at: at, entity_type: type, entity_id: id, operation, message } = row;
  return visible(`${at}  ${type}/${id}  ${operation}  ${message}  by ${actor}`);
};

const run = (io: Io, options: Options): Promise<void> =>
  inSession(io, async (session) => {
    await session.upToDate();
    await knownTenant(session, options.tenant);
    const { projecting, watch } = session.app;
    const signal = untilInterrupted(io);
    if (options.follow === true) {
      await projecting.start();
      watch.start();
    }
    let last: LogRow | undefined;
    do {
      watch.assertLogIntact();
      // Another generation may be live by now, and pruning removes the old one.
      if (!projecting.isUpToDate()) await projecting.refresh();
      const reader = projecting.reader('logs');
      const page: readonly LogRow[] = await walkLogs(
        reader,
        options.tenant,
        filterOf(options),
        PAGE_SIZE,
        last,
      );
      for (const row of page) {
        const view = logView(options.tenant, row);
        await writeOut(io, `${options.json === true ? JSON.stringify(view) : readable(row)}\n`, signal);
      }
      last = page.at(-1) ?? last;
      if (page.length > 0) continue;
      if (options.follow !== true) return;
      await pause(POLL_MS, signal);
    } while (!signal.aborted);
    if (options.follow === true || isOutputLost(signal)) return;
    notice(io, 'Interrupted: not all rows were printed.');
    io.exitCode = FAILED;
  });

export const logsCommand = (io: Io): Command =>
  new Command('logs')
    .description("print a tenant's audit log, oldest first; with --json one row per line")
    .addOption(tenantOption())
    .option('--entity-type <type>', 'only logs of this entity type')
    .option('--entity-id <id>', 'only logs of this entity')
    .option('--since <time>', 'only logs from this time on', bound)
    .option('--until <time>', 'only logs before this time', bound)
    .option('--follow', 'keep printing new rows until interrupted')
    .addOption(jsonOption())
    .action((options: Options, command: Command) => {
      mustBeInOrder(options, command);
      return run(io, options);
    });
