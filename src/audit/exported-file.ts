import Ajv from 'ajv';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { fault, messageOf } from '../fault';
import { parsedJson } from '../json';
import { UUID_PATTERN } from '../uuid';
import { eventFormats } from './event-lines';
import { trailerLine, type Trailer } from './export';

/** An exported file: lines, and as the last one the trailer. */
export interface ExportedFile {
  readonly file: string;
  readonly trailer: Trailer;
  /** Where the trailer starts, and the lines end. */
  readonly startsAt: number;
}

const text = { type: 'string' };
const texts = { type: 'array', items: text };
const number = { type: 'integer', minimum: 0 };
const position = { type: 'string', pattern: '^[0-9]{16,20}$' };
const tenantPosition = { type: 'string', pattern: '^(tenant|activity):(0|[1-9][0-9]{0,14})$' };

const filter = {
  tenants: texts,
  types: texts,
  actor: text,
  entity: { type: 'object', minProperties: 1, properties: { type: text, id: text } },
  operation: text,
  trace: text,
  key: text,
  since: text,
  until: text,
};

const common = {
  log: text,
  filter: { type: 'object', properties: filter },
  limit: { type: 'integer', minimum: 1 },
  complete: { type: 'boolean' },
  events: number,
  sha256: { type: 'string', pattern: '^[0-9a-f]{64}$' },
};

const ofOperator = {
  ...common,
  view: { const: 'operator' },
  format: { enum: eventFormats },
  after: position,
  up_to: position,
  first_position: position,
  last_position: position,
};

const oneTenant = {
  type: 'array',
  items: { type: 'string', pattern: `^${UUID_PATTERN}$` },
  minItems: 1,
  maxItems: 1,
};

const ofTenant = {
  ...common,
  view: { const: 'tenant' },
  version: { const: 2 },
  format: { const: 'ndjson' },
  filter: { type: 'object', required: ['tenants'], properties: { ...filter, tenants: oneTenant } },
  after: tenantPosition,
  follow: { const: true },
  up_to: { type: 'object', properties: { tenant: number, activity: number } },
  first_position: tenantPosition,
  last_position: tenantPosition,
};

const required = ['log', 'view', 'format', 'filter', 'complete', 'events', 'sha256'];
const trailerOf = (properties: object) => ({ type: 'object', required, properties });

/** Additional members are found when it is written again. */
const isTrailer = new Ajv({ strict: false }).compile<{ trailer: Trailer }>({
  type: 'object',
  required: ['trailer'],
  properties: { trailer: { anyOf: [trailerOf(ofOperator), trailerOf(ofTenant)] } },
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

/** Reads the trailer, which must be exactly what an export writes: byte by byte, with nothing added. */
export const openExport = async (file: string): Promise<ExportedFile> => {
  const { line, startsAt } = await lastLineOf(file).catch((error: unknown) => {
    throw unusable(file, `cannot be read: ${messageOf(error)}`);
  });
  const value = parsedJson(line.toString());
  if (!isTrailer(value))
    throw unusable(
      file,
      'does not end with the trailer of an export: it is not complete, or was written neither by tenant-ledger audit --output nor by GET /events.',
    );
  if (!line.equals(Buffer.from(trailerLine(value.trailer))))
    throw unusable(
      file,
      'ends with a trailer that was altered: it is not written as an export writes it, for example has additional or repeated members.',
    );
  return { file, trailer: value.trailer, startsAt };
};

/** Lines as bytes, since decoding could hide a difference. */
export async function* linesOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, undefined> {
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

export async function* fileFrom(file: string, start: number, end: number): AsyncGenerator<Buffer> {
  if (start < end)
    yield* createReadStream(file, { start, end: end - 1 }) as AsyncIterable<unknown> as AsyncIterable<Buffer>;
}
