import { open } from 'node:fs/promises';
import type { Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import { fault } from '../fault';
import { UUID_PATTERN } from '../uuid';
import { findEvents } from './event-filter';
import { eventLines, tenantLines } from './event-lines';
import { exportEvents, trailerBuilder, type ExportedChunk, type ExportRange, type Trailer } from './export';
import { fileFrom, linesOf, openExport, type ExportedFile } from './exported-file';
import { findPlace, revisionsUpTo, type Revisions } from './event-places';

export interface CheckedExport {
  readonly trailer: Trailer;
  /** The first difference. Undefined: the file is unaltered, and complete up to where its trailer says. */
  readonly difference?: { readonly line?: number; readonly what: string };
  /** How many events after that meet the conditions: recorded later, or left out by a limit or by whoever cut the file. */
  readonly later?: number;
}

async function* logFrom(first: Buffer, rest: AsyncIterable<ExportedChunk>): AsyncGenerator<Buffer> {
  yield first;
  for await (const { bytes } of rest) yield bytes;
}

const occursIn = async (line: Buffer, others: AsyncIterator<Buffer, undefined>): Promise<boolean> => {
  for (let next = await others.next(); next.done !== true; next = await others.next())
    if (line.equals(next.value)) return true;
  return false;
};

const EVENT_ID = new RegExp(UUID_PATTERN);
const MAX_NAME_LENGTH = 100;

/** In every format, the first UUID of a line is the id of its event. */
const eventIn = (line: Buffer): string => {
  const whole = line.toString();
  const id = EVENT_ID.exec(whole)?.[0];
  return id === undefined ? `the line ${JSON.stringify(whole.slice(0, MAX_NAME_LENGTH))}` : `event ${id}`;
};

const whatDiffers = async (
  inFile: Buffer | undefined,
  inLog: Buffer | undefined,
  restOfFile: AsyncIterator<Buffer, undefined>,
  restOfLog: AsyncIterator<Buffer, undefined>,
): Promise<string> => {
  if (inFile === undefined)
    return `${eventIn(inLog ?? Buffer.alloc(0))} is missing, and whatever came after it.`;
  if (inLog === undefined) return `${eventIn(inFile)} was added: the log has no more events here.`;
  const [found, expected] = [eventIn(inFile), eventIn(inLog)];
  if (found === expected) return `${found} was altered.`;
  const isMoved = await occursIn(inLog, restOfFile);
  const isInLog = await occursIn(inFile, restOfLog);
  if (isMoved && isInLog) return `${found} is where ${expected} should be: the order was changed.`;
  if (isInLog) return `${expected} is missing before ${found}.`;
  if (isMoved) return `${found} was added before ${expected}.`;
  return `${expected} was replaced by ${found}.`;
};

const altered = (names: readonly string[]): string => `the trailer was altered: ${names.join(', ')}.`;

const trailerDifference = (given: Trailer, expected: Trailer): string | undefined => {
  const names = ['complete', 'events', 'first_position', 'last_position', 'sha256'] as const;
  const different: string[] = names.filter((name) => given[name] !== expected[name]);
  if (given.events > (given.limit ?? Infinity)) different.push('limit');
  return different.length === 0 ? undefined : altered(different);
};

async function* withProgress(
  chunks: AsyncIterable<ExportedChunk>,
  onProgress: (read: number) => void,
): AsyncGenerator<ExportedChunk> {
  let total = 0;
  for await (const chunk of chunks) {
    onProgress((total += chunk.read));
    yield chunk;
  }
}

type Difference = NonNullable<CheckedExport['difference']>;

/** Finds the first line that differs, after `equalLines` lines that were already compared. */
const firstDifference = async (
  restOfFile: AsyncGenerator<Buffer, undefined>,
  restOfLog: AsyncGenerator<Buffer, undefined>,
  equalLines: number,
): Promise<Difference> => {
  try {
    for (let line = equalLines + 1; ; line += 1) {
      const [inFile, inLog] = [(await restOfFile.next()).value, (await restOfLog.next()).value];
      if (inFile !== undefined && inLog?.equals(inFile) === true) continue;
      return { line, what: await whatDiffers(inFile, inLog, restOfFile, restOfLog) };
    }
  } finally {
    await restOfFile.return(undefined);
    await restOfLog.return(undefined);
  }
};

/** Compares whole chunks up to the first difference: line by line would take twice as long. */
const compare = async (
  file: string,
  end: number,
  chunks: AsyncGenerator<ExportedChunk>,
): Promise<{ readonly lines: number; readonly difference?: Difference }> => {
  const handle = await open(file);
  let [at, lines] = [0, 0];
  const differenceAfter = async (inLog: Buffer) => ({
    lines,
    difference: await firstDifference(
      linesOf(fileFrom(file, at, end)),
      linesOf(logFrom(inLog, chunks)),
      lines,
    ),
  });
  try {
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) {
      const { bytes, lines: count } = next.value;
      const inFile = Buffer.alloc(Math.min(bytes.length, end - at));
      await handle.read(inFile, 0, inFile.length, at);
      if (!inFile.equals(bytes)) return await differenceAfter(bytes);
      at += bytes.length;
      lines += count;
    }
    return at < end ? await differenceAfter(Buffer.alloc(0)) : { lines };
  } finally {
    await handle.close();
    await chunks.return(undefined);
  }
};

/** Where a tenant's revisions are in the log. Undefined: no state of the log had these last revisions. */
const cutAt = async (
  ledgerLog: LedgerLog,
  tenantId: string,
  upTo: Revisions,
): Promise<Position | undefined> => {
  const named = (['tenant', 'activity'] as const).filter((kind) => upTo[kind] !== undefined);
  const places = await Promise.all(
    named.map((kind) => findPlace(ledgerLog, tenantId, `${kind}:${upTo[kind]}`)),
  );
  const [cut] = places
    .map((place) => place?.position ?? '')
    .toSorted()
    .toReversed();
  if (cut === undefined || places.includes(undefined)) return undefined;
  const { tenant, activity } = await revisionsUpTo(ledgerLog, tenantId, cut);
  return tenant === upTo.tenant && activity === upTo.activity ? cut : undefined;
};

/** The part of the log that a trailer names, or the member of the trailer that names none. */
const rangeOf = async (
  ledgerLog: LedgerLog,
  { filter, after, up_to }: Trailer,
): Promise<{ readonly range: ExportRange } | { readonly wrong: string }> => {
  if (typeof up_to !== 'object') return { range: { filter, after, upTo: up_to } };
  const [tenantId = ''] = filter.tenants ?? [];
  const upTo = await cutAt(ledgerLog, tenantId, up_to);
  if (upTo === undefined) return { wrong: 'up_to' };
  if (after === undefined) return { range: { filter, upTo } };
  const place = await findPlace(ledgerLog, tenantId, after);
  return place === undefined ? { wrong: 'after' } : { range: { filter, after: place.position, upTo } };
};

const countLater = async (
  ledgerLog: LedgerLog,
  { filter, upTo }: ExportRange,
  onProgress: (read: number) => void,
): Promise<number> => {
  let [found, total] = [0, 0];
  for await (const { events, read } of findEvents(ledgerLog, filter, { after: upTo }, () => undefined)) {
    found += events.length;
    onProgress((total += read));
  }
  return found;
};

const mustBeOfLog = async ({ log }: LedgerLog, { file, trailer }: ExportedFile): Promise<void> => {
  const identity = await log.identity();
  if (trailer.log !== identity)
    throw fault(
      'file_unreadable',
      `The file ${file} was exported from the log ${trailer.log}, and this is the log ${identity}. Check it against the log that it came from.`,
    );
};

/** Repeats an export from the log and compares its lines with those of the file. */
export const checkExport = async (
  ledgerLog: LedgerLog,
  file: string,
  onProgress: (read: number) => void = () => undefined,
): Promise<CheckedExport> => {
  const exported = await openExport(file);
  const { trailer, startsAt } = exported;
  await mustBeOfLog(ledgerLog, exported);
  const found = await rangeOf(ledgerLog, trailer);
  if ('wrong' in found) return { trailer, difference: { what: altered([found.wrong]) } };
  const { range } = found;
  const trail = trailerBuilder();
  const lines =
    trailer.view === 'tenant'
      ? tenantLines(ledgerLog, trailer.version ?? 1)
      : eventLines(trailer.format, ledgerLog.streams);
  const exporting = { lines, onUnreadable: () => undefined };
  const chunks = withProgress(exportEvents(ledgerLog, range, exporting, trail), onProgress);
  const { lines: count, difference } = await compare(file, startsAt, chunks);
  if (difference !== undefined) return { trailer, difference };
  const what = trailerDifference(trailer, trail.trailer(trailer, trailer));
  if (what !== undefined) return { trailer, difference: { line: count + 1, what } };
  return { trailer, later: await countLater(ledgerLog, range, onProgress) };
};
