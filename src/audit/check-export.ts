import Ajv from 'ajv';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import type { LedgerLog } from '../event-log/ledger-log';
import { fault, messageOf } from '../fault';
import { parsedJson } from '../json';
import { UUID_PATTERN } from '../uuid';
import { eventFormats, eventLines } from './event-lines';
import { exportEvents, trailerBuilder, type ExportedChunk, type Trailer } from './export';

export interface CheckedExport {
  readonly trailer: Trailer;
  /** The first difference. Undefined: the file is complete and unaltered. */
  readonly difference?: { readonly line: number; readonly what: string };
}

const text = { type: 'string' };
const texts = { type: 'array', items: text };
const number = { type: 'integer', minimum: 0 };

const isTrailer = new Ajv().compile<{ trailer: Trailer }>({
  type: 'object',
  required: ['trailer'],
  properties: {
    trailer: {
      type: 'object',
      required: ['log', 'format', 'filter', 'events', 'sha256'],
      additionalProperties: false,
      properties: {
        log: text,
        format: { enum: eventFormats },
        filter: {
          type: 'object',
          additionalProperties: false,
          properties: {
            tenants: texts,
            types: texts,
            actor: text,
            entity: { type: 'object', required: ['type', 'id'], properties: { type: text, id: text } },
            operation: text,
            trace: text,
            key: text,
            since: text,
            until: text,
          },
        },
        after: text,
        up_to: text,
        limit: number,
        events: number,
        first_position: text,
        last_position: text,
        sha256: text,
      },
    },
  },
});

const LINE_FEED = 0x0a;
const MAX_TRAILER_BYTES = 1_048_576;

const unusable = (file: string, what: string) => fault('file_unreadable', `The file ${file} ${what}`);

const lastLineOf = async (file: string): Promise<{ readonly line: Buffer; readonly startsAt: number }> => {
  const handle = await open(file);
  try {
    const { size } = await handle.stat();
    const start = Math.max(0, size - MAX_TRAILER_BYTES);
    const end = Buffer.alloc(size - start);
    await handle.read(end, 0, end.length, start);
    const whole = end.at(-1) === LINE_FEED ? end.subarray(0, -1) : Buffer.alloc(0);
    const before = whole.lastIndexOf(LINE_FEED);
    return { line: whole.subarray(before + 1), startsAt: start + before + 1 };
  } finally {
    await handle.close();
  }
};

const trailerOf = async (file: string): Promise<{ readonly trailer: Trailer; readonly startsAt: number }> => {
  const { line, startsAt } = await lastLineOf(file).catch((error: unknown) => {
    throw unusable(file, `cannot be read: ${messageOf(error)}`);
  });
  const value = parsedJson(line.toString());
  if (!isTrailer(value))
    throw unusable(
      file,
      'does not end with the trailer of an export: it is not complete, or was not written by tenant-ledger audit --output.',
    );
  return { trailer: value.trailer, startsAt };
};

/** Lines as bytes, since decoding could hide a difference. */
async function* linesOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (let end = rest.indexOf(LINE_FEED); end >= 0; end = rest.indexOf(LINE_FEED)) {
      yield rest.subarray(0, end);
      rest = rest.subarray(end + 1);
    }
  }
  if (rest.length > 0) yield rest;
}

async function* fileFrom(file: string, start: number, end: number): AsyncGenerator<Buffer> {
  if (start < end)
    yield* createReadStream(file, { start, end: end - 1 }) as AsyncIterable<unknown> as AsyncIterable<Buffer>;
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

interface Unequal {
  readonly inFile: Buffer | undefined;
  readonly inLog: Buffer | undefined;
  readonly restOfFile: AsyncIterator<Buffer, undefined>;
  readonly restOfLog: AsyncIterator<Buffer, undefined>;
}

const whatDiffers = async ({ inFile, inLog, restOfFile, restOfLog }: Unequal): Promise<string> => {
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

const trailerDifference = (given: Trailer, expected: Trailer): string | undefined => {
  const names = ['events', 'first_position', 'last_position', 'sha256'] as const;
  const different = names.filter((name) => given[name] !== expected[name]);
  return different.length === 0 ? undefined : `the trailer was altered: ${different.join(', ')}.`;
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
      return { line, what: await whatDiffers({ inFile, inLog, restOfFile, restOfLog }) };
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

/** Repeats an export from the log and compares its lines with those of the file. */
export const checkExport = async (
  ledgerLog: LedgerLog,
  file: string,
  onProgress: (read: number) => void = () => undefined,
): Promise<CheckedExport> => {
  const { trailer, startsAt } = await trailerOf(file);
  const identity = await ledgerLog.log.identity();
  if (trailer.log !== identity)
    throw fault(
      'file_unreadable',
      `The file ${file} was exported from the log ${trailer.log}, and this is the log ${identity}. Check it against the log that it came from.`,
    );
  const trail = trailerBuilder();
  const exporting = { lines: eventLines(trailer.format, ledgerLog.streams), onUnreadable: () => undefined };
  const chunks = withProgress(exportEvents(ledgerLog, trailer, exporting, trail), onProgress);
  const { lines, difference } = await compare(file, startsAt, chunks);
  if (difference !== undefined) return { trailer, difference };
  const what = trailerDifference(trailer, trail.trailer(trailer, identity));
  return what === undefined ? { trailer } : { trailer, difference: { line: lines + 1, what } };
};
