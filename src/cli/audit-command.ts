import { Command, InvalidArgumentError, Option } from 'commander';
import { clientFrom, type EventFilter } from '../audit/event-filter';
import { eventSchemas, operatorEventSchemas } from '../domain/events';
import { looksLikeKey, masked } from '../domain/texts';
import { firstOf, type Position, parsedJson } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/streams';
import { fault, suggestionFor } from '../fault';
import { bound, collected, option, parser, uuid, wholeNumber, type JsonOption } from './arguments';
import { followedFile, readCursor, type FollowedFiles } from './audit-file';
import { FAILED } from './failure';
import type { Io } from './io';
import { counted, isOutputLost, notice, printJson, untilInterrupted, writeOut } from './output';
import { withProgress, type ProgressLine } from './progress';
import { withConfiguredLog } from './session';

type TextOption =
  'event' | 'actor' | 'operation' | 'trace' | 'key' | 'client' | 'after' | 'since' | 'until' | 'output';

interface Options extends Readonly<Partial<Record<TextOption, string>>> {
  readonly tenant?: readonly string[];
  readonly type?: readonly string[];
  readonly entity?: { readonly type: string; readonly id: string };
  readonly follow?: boolean;
  readonly cursorFile?: string;
  readonly limit?: number;
  readonly format?: 'ndjson' | 'pretty';
}

const filterOf = (options: Options): EventFilter => {
  const { event, tenant, type, actor, entity, operation, trace, key, client, since, until } = options;
  return { event, tenants: tenant, types: type, actor, entity, operation, trace, key, client, since, until };
};

const entity = parser('It must be a type and an id, for example application:7b1e8f0a-….', (text) => {
  const [, type, id] = /^([^:]+):(.+)$/s.exec(text) ?? [];
  return type === undefined || id === undefined ? undefined : { type, id };
});

const knownTypes = [...Object.keys(eventSchemas), ...Object.keys(operatorEventSchemas)];

const eventTypes = (text: string, before?: readonly string[]): readonly string[] => {
  if (knownTypes.includes(text)) return collected(text, before);
  throw new InvalidArgumentError(`There is no such event type: ${suggestionFor(text, knownTypes)}`);
};

const tenants = (text: string, before?: readonly string[]): readonly string[] =>
  collected(uuid(text), before);

const address = parser('It must be an IP address, for example 192.0.2.1 or 2001:db8::1.', clientFrom);

const position = parser(
  'It must be a position as events show it, for example 0000000000000042.',
  (text): Position | undefined => (/^[0-9]{16,20}$/.test(text) ? text : undefined),
);

/**
 * Positions are compared as text, so one from another kind of log would mean something else. With one beyond the end of
 * the log, new events would be skipped until the log has grown past it.
 */
const mustBeReached = async ({ log }: LedgerLog, given: Position): Promise<void> => {
  const head = (await log.head())?.position ?? '';
  const digits = `: its positions have ${head.length} digits, like ${head}`;
  if (head !== '' && head.length !== given.length)
    throw fault('wrong_usage', `${given} is not a position of this log${digits}.`);
  const end = head === '' ? 'it is empty' : `it ends at ${head}`;
  if (given > head) throw fault('wrong_usage', `${given} is not a position of this log yet: ${end}.`);
};

/** Readable lines are the default on a terminal. */
const isPretty = ({ stdout }: Io, { format }: Options): boolean =>
  format === 'pretty' || (format === undefined && stdout.isTTY === true);

const supportsColor = ({ stdout, env }: Io): boolean => stdout.isTTY === true && !env['NO_COLOR'];

/** Says where to resume later. Only `--follow` is meant to be interrupted. */
const noticeEnd = (io: Io, { follow }: Options, upTo: Position | undefined): void => {
  if (follow !== true) io.exitCode = FAILED;
  notice(io, upTo === undefined ? 'Nothing was read.' : `To continue: --after ${upTo}`);
};

const noticeUnreadable = (io: Io, count: number): void => {
  const remedy = 'To see everything, leave out --entity and --operation.';
  if (count > 0)
    notice(
      io,
      `${counted(count, 'event')} had no entity or operation to compare, being unreadable. ${remedy}`,
    );
};

const DAILY_SUMS =
  'Reads are in KeyUsed: the first of each UTC day from an address, exports and streams at once, the others after the day.';

/** Otherwise a key that only read, or an address, would look unused. */
const noticeDailySums = (io: Io, { key, client, follow }: Options): void => {
  if ((key !== undefined || client !== undefined) && follow !== true) notice(io, DAILY_SUMS);
};

/** A condition that no event can meet, such as a mistyped id, must not look like an empty answer. */
const mustHaveTenants = async ({ log }: LedgerLog, { tenant = [] }: Options): Promise<void> => {
  for (const id of tenant)
    if ((await firstOf(log.readTenant(id))) === undefined)
      throw fault('tenant_not_found', `There is no tenant ${id}.`);
};

/** Masked only if a condition contains a key: with a masked condition, a trailer describes another export. */
const withoutKey = (trailer: string): string => (looksLikeKey(trailer) ? masked(trailer) : trailer);

/** Exports until the end, the limit or an interruption. Returns the number of events, and the position reached. */
const run = async (
  io: Io,
  ledgerLog: LedgerLog,
  options: Options,
  upTo: Position | undefined,
  line: ProgressLine,
  signal: AbortSignal,
) => {
  const { exportLines } = require('../audit/export') as typeof import('../audit/export');
  const { prettyLine } = require('./audit-lines') as typeof import('./audit-lines');
  const { log, streams } = ledgerLog;
  const { event, after, limit, follow = false } = options;
  const total = upTo === undefined ? 0 : await log.distance(after, upTo);
  let done = 0;
  let events = 0;
  let unreadable = 0;
  let reached = after;
  const most = event === undefined ? limit : 1;
  const conditions = { view: 'operator', filter: filterOf(options), after, limit: most } as const;
  const pretty = isPretty(io, options) ? prettyLine(streams, supportsColor(io)) : undefined;
  const exporting = { onUnreadable: () => (unreadable += 1) };
  const range = { after, upTo, follow, signal };
  for await (const part of exportLines(ledgerLog, conditions, range, exporting)) {
    const { read, last, isTrailer } = part;
    // Lines for people have no trailer.
    if (isTrailer && pretty !== undefined) break;
    const lines = pretty === undefined ? part.lines : part.events.map(pretty);
    const text = lines.map((each) => `${each}\n`).join('');
    if (text !== '') line.clear();
    await writeOut(io, isTrailer ? withoutKey(text) : text, signal);
    if (isTrailer || signal.aborted) break;
    done += read;
    events += lines.length;
    reached = last?.position ?? reached;
    if (!follow) line.showStep('reading', done, total);
  }
  return { reached, events, unreadable };
};

/** Continues from the cursor, until it is interrupted. */
const followIntoFile = async (io: Io, ledgerLog: LedgerLog, options: Options, files: FollowedFiles) => {
  const { exportLines } = require('../audit/export') as typeof import('../audit/export');
  const log = await ledgerLog.log.identity();
  const after = readCursor(files.cursorFile, log);
  if (after !== undefined) await mustBeReached(ledgerLog, after);
  const failed = new AbortController();
  const signal = AbortSignal.any([untilInterrupted(io), failed.signal]);
  const file = followedFile(files, log, (error) => failed.abort(error));
  const conditions = { view: 'operator', filter: filterOf(options), after } as const;
  const range = { after, follow: true, signal };
  let unreadable = 0;
  const exporting = { onUnreadable: () => (unreadable += 1) };
  try {
    for await (const { lines, last } of exportLines(ledgerLog, conditions, range, exporting))
      file.add(lines.map((line) => `${line}\n`).join(''), last?.position);
  } finally {
    file.close();
  }
  failed.signal.throwIfAborted();
  noticeUnreadable(io, unreadable);
  notice(io, 'To continue, run the same command again.');
};

const audit = (io: Io, options: Options): Promise<void> =>
  withConfiguredLog(io, async (ledgerLog) => {
    await mustHaveTenants(ledgerLog, options);
    const { output, cursorFile } = options;
    if (output !== undefined && cursorFile !== undefined)
      return followIntoFile(io, ledgerLog, options, { output, cursorFile });
    if (options.after !== undefined) await mustBeReached(ledgerLog, options.after);
    const signal = untilInterrupted(io);
    const head = options.follow === true ? undefined : await ledgerLog.log.head();
    const { reached, events, unreadable } = await withProgress(io, 'Exporting:', (line) =>
      run(io, ledgerLog, options, head?.position, line, signal),
    );
    noticeUnreadable(io, unreadable);
    noticeDailySums(io, options);
    if (signal.aborted) return isOutputLost(signal) ? undefined : noticeEnd(io, options, reached);
    if (options.event !== undefined && events === 0)
      throw fault('event_not_found', `No event ${options.event} meets the conditions.`);
    if (isPretty(io, options)) notice(io, counted(events, 'event'));
  });

/** What the log has in the place of a line that differs. */
const expectedText = (line: string | undefined): string => {
  if (line === undefined) return 'nothing more';
  const { id } = parsedJson(line) as { readonly id?: string };
  return id === undefined ? 'another trailer' : `event ${id}`;
};

const checkCommand = (io: Io): Command =>
  new Command('check')
    .description('compare an exported file with the log: is it complete and unaltered?')
    .argument('<file>', 'written by tenant-ledger audit, or by GET /events as NDJSON')
    .addOption(option.json())
    .addHelpText(
      'after',
      `
The same export is made again from the log, with the conditions that the trailer names, and compared line by line. The
first line that differs is named. Exit code 0: equal, 1: different. It is complete only for these conditions, which are
printed. Without the log, the sha256 in the trailer can be compared with: head -n -1 FILE | sha256sum`,
    )
    .action((file: string, { json = false }: JsonOption) =>
      withConfiguredLog(io, async (ledgerLog) => {
        const { checkExport } = require('../audit/check-export') as typeof import('../audit/check-export');
        const { trailer, difference } = await withProgress(io, 'Checking:', (line) =>
          checkExport(ledgerLog, file, (read) => line.show(`${read} events read`)),
        );
        if (difference !== undefined) io.exitCode = FAILED;
        if (json) return printJson(io, { file, unaltered: difference === undefined, difference, trailer });
        const { filter, after, limit, up_to, events } = trailer;
        const what = JSON.stringify({ filter, after, limit, up_to });
        if (difference === undefined)
          return void io.stdout.write(`${file} is unaltered: ${counted(events, 'event')} with ${what}\n`);
        const expected = expectedText(difference.expected);
        notice(io, `${file} differs from the log in line ${difference.line}: the log has ${expected} there.`);
      }),
    );

const HELP = `
Events come from the event log itself, in its order, one per line: on a terminal readable, with what each decision changed
(old → new), elsewhere NDJSON. Conditions combine with AND; --tenant and --type may be given several times.
--key: events caused with this key, or about it, and facts that name it. Reads make no events of their own: what a key
was used for, reads included, from where, and refused is summed up per UTC day in KeyUsed. --client: in any spelling; an
IPv6 address stands for its /64, which is what is recorded. --since and --until compare the time of recording.
The last line of NDJSON is a trailer: the conditions, the number of events and the SHA-256 of the lines before it. A file
can be checked with: head -n -1 FILE | sha256sum, and against the log with tenant-ledger audit check FILE.
--output with --cursor-file: every event is in the file at least once, whenever this is killed; drop copies by their id.`;

const NOT_INTO_FILE = ['after', 'limit', 'event', 'format'];

export const auditCommand = (io: Io): Command =>
  new Command('audit')
    .description('print raw events from the event log, of all tenants or of some')
    .option('--tenant <uuid>', 'only events of this tenant', tenants)
    .option('--event <uuid>', 'only the event with this id', uuid)
    .option('--type <type>', 'only events of this type', eventTypes)
    .option('--actor <uuid>', 'only events caused by this Application or user', uuid)
    .option('--entity <type:id>', 'only events about this entity', entity)
    .option('--operation <operation>', 'only events with this operation, for example update')
    .option('--trace <id>', 'only events of this trace')
    .option('--key <uuid>', 'only events by or about this key', uuid)
    .option('--client <address>', 'only events of requests from this IP address', address)
    .addOption(
      new Option('--after <position>', 'begin after this position').argParser(position).conflicts('since'),
    )
    .option('--since <time>', 'only events recorded from this time on', bound)
    .option('--until <time>', 'only events recorded before this time', bound)
    .addOption(new Option('--follow', 'keep printing new events until interrupted').conflicts('until'))
    .addOption(
      new Option('--output <file>', 'with --follow: append to this file instead of printing').conflicts(
        NOT_INTO_FILE,
      ),
    )
    .option(
      '--cursor-file <file>',
      'with --output: continue from here, and note here up to where it is written',
    )
    .option('--limit <n>', 'stop after this many events', wholeNumber(1))
    .addOption(new Option('--format <format>', 'output format').choices(['ndjson', 'pretty']))
    .addHelpText('after', HELP)
    .action((options: Options, command: Command) => {
      const { since, until, follow, output, cursorFile } = options;
      if (since !== undefined && until !== undefined && since > until)
        command.error('error: --since must not be after --until');
      const isIntoFile = output !== undefined || cursorFile !== undefined;
      const isWhole = follow === true && output !== undefined && cursorFile !== undefined;
      if (isIntoFile && !(isWhole && output !== cursorFile))
        command.error(
          'error: --output and --cursor-file name two files, and are used together with --follow',
        );
      return audit(io, options);
    })
    .addCommand(checkCommand(io));
