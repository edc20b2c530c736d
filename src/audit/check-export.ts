import Ajv from 'ajv';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { type Position, parsedJson } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/streams';
import { fault, messageOf } from '../fault';
import type { EventRange } from './event-filter';
import { splitLines } from '../lines';
import { findPlace } from './event-places';
import { exportLines, type Trailer } from './export';

const text = { type: 'string' };
const texts = { type: 'array', items: text };
const position = { type: 'string', pattern: '^[0-9]{16,20}$' };

const TEXTS = ['event', 'actor', 'operation', 'trace', 'source', 'key', 'client', 'since', 'until'];

/** The conditions that are executed again; all other members are found by comparing the trailer with the new one. */
const common = {
  log: text,
  limit: { type: 'integer', minimum: 1 },
  filter: {
    type: 'object',
    properties: {
      ...Object.fromEntries(TEXTS.map((name) => [name, text])),
      tenants: texts,
      types: texts,
      entity: { type: 'object', properties: { type: text, id: text }, additionalProperties: false },
    },
    additionalProperties: false,
  },
};
const ofOperator = { ...common, view: { const: 'operator' }, after: position, up_to: position };
const ofTenant = { ...common, view: { const: 'tenant' }, after: text, up_to: { type: 'object' } };
const required = ['log', 'view', 'filter'];

const isTrailer = new Ajv({ strict: false }).compile<{ trailer: Trailer }>({
  type: 'object',
  required: ['trailer'],
  properties: {
    trailer: { type: 'object', required, anyOf: [{ properties: ofOperator }, { properties: ofTenant }] },
  },
});

const LINE_FEED = 0x0a;
const MAX_TRAILER_BYTES = 1_048_576;

const unusable = (file: string, what: string) => fault('file_unreadable', `The file ${file} ${what}`);
const NO_TRAILER =
  'does not end with the trailer of an export: it is not complete, or was written neither by tenant-ledger audit nor by GET /events.';

const lastLineOf = async (file: string): Promise<string> => {
  const handle = await open(file);
  try {
    const { size } = await handle.stat();
    const end = Buffer.alloc(Math.min(size, MAX_TRAILER_BYTES));
    await handle.read(end, 0, end.length, size - end.length);
    return end.subarray(end.lastIndexOf(LINE_FEED, -2) + 1).toString();
  } finally {
    await handle.close();
  }
};

const trailerOf = async (file: string): Promise<Trailer> => {
  const line = await lastLineOf(file).catch((error: unknown) => {
    throw unusable(file, `cannot be read: ${messageOf(error)}`);
  });
  const value = parsedJson(line);
  if (isTrailer(value)) return value.trailer;
  throw unusable(file, NO_TRAILER);
};

/** The part of the log that a trailer names. A tenant's ends with the last of its events up to the revisions named. */
const rangeOf = async (ledgerLog: LedgerLog, { filter, after, up_to }: Trailer): Promise<EventRange> => {
  if (typeof up_to !== 'object') return { after, upTo: up_to };
  const [tenantId = ''] = filter.tenants ?? [];
  const positionOf = async (place: string): Promise<Position | undefined> =>
    (await findPlace(ledgerLog, tenantId, place))?.position;
  const named = Object.entries(up_to).map(([kind, revision]) => positionOf(`${kind}:${revision}`));
  const ends = (await Promise.all(named)).filter((end) => end !== undefined);
  return { after: after === undefined ? undefined : await positionOf(after), upTo: ends.toSorted().at(-1) };
};

/** Lines as bytes, since decoding could hide a difference. */
export async function* linesOf(file: string): AsyncGenerator<Buffer, undefined> {
  for await (const lines of splitLines(createReadStream(file))) yield* lines;
}

export interface CheckedExport {
  readonly trailer: Trailer;
  /** The first line that differs, and what the log has there: nothing more, if it is undefined. */
  readonly difference: { readonly line: number; readonly expected?: string } | undefined;
}

async function* linesAgain(ledgerLog: LedgerLog, trailer: Trailer, onProgress: (read: number) => void) {
  const range = await rangeOf(ledgerLog, trailer);
  const options = { onUnreadable: () => undefined };
  let total = 0;
  for await (const { lines, read } of exportLines(ledgerLog, trailer, range, options)) {
    onProgress((total += read));
    yield* lines;
  }
}

const firstDifference = async (inFile: AsyncIterator<Buffer>, inLog: AsyncIterable<string>) => {
  let line = 0;
  for await (const expected of inLog) {
    line += 1;
    const { value, done } = await inFile.next();
    if (done === true || !value.equals(Buffer.from(expected))) return { line, expected };
  }
  return (await inFile.next()).done === true ? undefined : { line: line + 1 };
};

/** Makes the same export again from the log, and compares it with the file line by line, the trailer included. */
export const checkExport = async (
  ledgerLog: LedgerLog,
  file: string,
  onProgress: (read: number) => void = () => undefined,
): Promise<CheckedExport> => {
  const trailer = await trailerOf(file);
  const identity = await ledgerLog.log.identity();
  if (trailer.log !== identity)
    throw unusable(
      file,
      `was exported from the log ${trailer.log}; this is ${identity}. Check it against that one.`,
    );
  const inFile = linesOf(file);
  try {
    return { trailer, difference: await firstDifference(inFile, linesAgain(ledgerLog, trailer, onProgress)) };
  } finally {
    await inFile.return(undefined);
  }
};
