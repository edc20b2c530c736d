import { Command } from 'commander';
import { findEvents } from '../../audit/event-filter';
import { rawEvent, type RawEvent } from '../../audit/event-views';
import { effectOf } from '../../audit/tenant-history';
import { decode } from '../../event-log/codec';
import type { LoggedEvent } from '../../event-log/event-log';
import type { LedgerLog } from '../../event-log/ledger-log';
import { codeOf, fault, messageOf } from '../../fault';
import { jsonOption, uuid, type JsonOption } from '../arguments';
import { withConfiguredLog } from './arguments';
import { notice, printJson, printRecord, printTable, valueText } from '../output';
import { withProgress, type ProgressLine } from '../progress';
import type { Io } from '../io';

interface Options extends JsonOption {
  readonly tenant?: string;
}

/** Scans the log, which has no index by event id. Read models do not contain events that cannot be read. */
const find = async (
  ledgerLog: LedgerLog,
  id: string,
  tenantId: string | undefined,
  line: ProgressLine,
): Promise<LoggedEvent> => {
  const filter = tenantId === undefined ? {} : { tenants: [tenantId] };
  let done = 0;
  for await (const { events, read } of findEvents(ledgerLog, filter, {}, () => undefined)) {
    const match = events.find((event) => event.id === id);
    if (match !== undefined) return match;
    line.show(`${(done += read)} events read`);
  }
  const where = tenantId === undefined ? 'the log' : `tenant ${tenantId}`;
  throw fault('event_not_found', `There is no event ${id} in ${where}.`);
};

const othersOfTrace = async (
  ledgerLog: LedgerLog,
  { id, tenant_id, trace_id }: RawEvent,
): Promise<readonly RawEvent[]> => {
  if (typeof trace_id !== 'string' || tenant_id === undefined) return [];
  const others: RawEvent[] = [];
  const filter = { tenants: [tenant_id], trace: trace_id };
  for await (const { events } of findEvents(ledgerLog, filter, {}, () => undefined))
    others.push(
      ...events.filter((event) => event.id !== id).map((event) => rawEvent(event, ledgerLog.streams)),
    );
  return others;
};

/** The entity before and after an event of the tenant's own stream. Entities of other services are unknown here. */
const effect = async (ledgerLog: LedgerLog, event: LoggedEvent) => {
  const decoded = decode(event, ledgerLog.streams);
  if (decoded.status === 'bad') return { unreadable: decoded.reason };
  if (decoded.status !== 'good' || decoded.kind !== 'tenant') return {};
  try {
    const { before = null, after = null, changes } = await effectOf(ledgerLog, decoded.event);
    return { before, after, changes };
  } catch (error) {
    if (codeOf(error) !== 'tenant_unreadable') throw error;
    return { unreadable: messageOf(error) };
  }
};

const cell = (value: unknown): string | undefined => valueText(value ?? undefined);

const show =
  (io: Io) =>
  (id: string, { tenant, json }: Options): Promise<void> =>
    withConfiguredLog(io, async (ledgerLog) => {
      const logged = await withProgress(io, 'Searching:', (line) => find(ledgerLog, id, tenant, line));
      const event = rawEvent(logged, ledgerLog.streams);
      const { unreadable, before, after, changes } = await effect(ledgerLog, logged);
      const trace = await othersOfTrace(ledgerLog, event);
      if (json === true) return printJson(io, { event, unreadable, before, after, changes, trace });
      printRecord(io, Object.fromEntries(Object.entries(event).map(([name, value]) => [name, cell(value)])));
      if (unreadable !== undefined) notice(io, `It cannot be read by this program: ${unreadable}`);
      if (changes !== undefined) {
        const changed = new Set(changes.map(({ field }) => field));
        io.stdout.write('\nBefore and after (* changed):\n');
        printTable(
          io,
          Object.keys({ ...before, ...after }).map((field) => ({
            field: `${changed.has(field) ? '*' : ' '} ${field}`,
            before: cell(before?.[field]),
            after: cell(after?.[field]),
          })),
        );
      }
      if (trace.length > 0) {
        io.stdout.write('\nOther events of the same trace:\n');
        printTable(
          io,
          trace.map(({ id: other, type, recorded_at, stream }) => ({ id: other, type, recorded_at, stream })),
        );
      }
    });

export const showCommand = (io: Io): Command =>
  new Command('show')
    .description('show one event in full, what it changed, and the other events of its trace')
    .argument('<event>', 'the id of the event', uuid)
    .option('--tenant <uuid>', 'look only among events of this tenant, which is faster', uuid)
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
An event at which a tenant is parked is shown too, with what is wrong with it: look at it before you set it aside.`,
    )
    .action(show(io));
