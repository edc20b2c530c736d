import { monotonicMs } from '../clock';
import type { EventLog, Expected, NewEvent, Position } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { codeOf, type Fault } from '../fault';
import type { Ledger } from '../ledger/ledger';
import { readFact } from './fact-line';
import { linesOf, LONGEST_LINE, type Line } from './lines';

/** Takes reported facts, one JSON object a line, into the activity streams of their tenants. */
export interface IngestParts {
  readonly log: EventLog;
  readonly ledger: Ledger;
  readonly streams: Streams;
  /** Do the read models show this position? Waits a while. */
  readonly reached: (position: Position, withinMs: number) => Promise<boolean>;
  readonly now: () => string;
}

export interface IngestOptions {
  readonly dryRun: boolean;
  readonly onRefused: (line: number, reason: string) => void;
  readonly onProgress: (soFar: Ingested) => void;
}

export interface Ingested {
  readonly accepted: number;
  readonly refused: number;
}

/** So many lines or bytes are read before they are appended; an append holds fewer, so that live followers keep up. */
const BATCH_LINES = 500;
const BATCH_BYTES = 524_288;
const APPEND_EVENTS = 100;
const APPEND_MS = 10_000;
const ASK_MS = 10_000;

/** The read models may be this many batches behind before ingest waits for them. */
const BATCHES_AHEAD = 2;
const WAIT_MS = 30_000;

interface Taken {
  readonly line: number;
  readonly tenantId: string;
  readonly event: NewEvent;
  readonly bytes: number;
}

/** What keeps a tenant from taking facts, or undefined. Another process may have deleted it since the last batch. */
const tenantFault = async ({ ledger }: IngestParts, tenantId: string): Promise<string | undefined> => {
  const status = await ledger.askAtHead(tenantId, (fold) => fold.tenant.status, monotonicMs() + ASK_MS);
  if (status === 'active') return undefined;
  return status === 'absent' ? `tenant ${tenantId} is unknown` : `tenant ${tenantId} is deleted`;
};

/** Appends to the end of a stream, wherever that is. The same ids again are harmless: a second copy counts nowhere. */
const appender = ({ log, streams }: IngestParts) => {
  const ends = new Map<string, Expected>();
  const append = async (tenantId: string, events: readonly NewEvent[]): Promise<Position> => {
    const stream = streams.activity(tenantId);
    for (;;)
      try {
        const { revision, position } = await log.append(
          stream,
          events,
          ends.get(stream) ?? 'no_stream',
          APPEND_MS,
        );
        ends.set(stream, revision);
        return position;
      } catch (error) {
        if (codeOf(error) !== 'stream_changed') throw error;
        const actual = Number((error as Fault).more['actual']);
        ends.set(stream, actual < 0 ? 'no_stream' : actual);
      }
  };
  return append;
};

const later = (a: Position, b: Position): Position => (a > b ? a : b);

export const ingest = async (
  input: AsyncIterable<Buffer | string>,
  parts: IngestParts,
  options: IngestOptions,
): Promise<Ingested> => {
  const append = appender(parts);
  const behind: Position[] = [];
  let accepted = 0;
  let refused = 0;

  const refuse = (line: number, reason: string): void => {
    refused += 1;
    options.onRefused(line, reason);
  };

  const take = (line: Line, at: string): readonly Taken[] => {
    if ('tooLong' in line) {
      refuse(line.number, `it is longer than ${LONGEST_LINE} bytes`);
      return [];
    }
    if (line.text.trim() === '') return [];
    const fact = readFact(line.text, at);
    if (fact.status === 'good') return [{ line: line.number, ...fact }];
    refuse(line.number, fact.reason);
    return [];
  };

  const appendTenant = async (tenantId: string, facts: readonly Taken[]): Promise<Position> => {
    const wrong = await tenantFault(parts, tenantId);
    if (wrong !== undefined) {
      for (const { line } of facts) refuse(line, wrong);
      return '';
    }
    let position = '';
    for (let from = 0; from < facts.length; from += APPEND_EVENTS) {
      const events = facts.slice(from, from + APPEND_EVENTS).map(({ event }) => event);
      if (!options.dryRun) position = await append(tenantId, events);
      accepted += events.length;
    }
    return position;
  };

  const appendBatch = async (batch: readonly Taken[]): Promise<void> => {
    const byTenant = new Map<string, Taken[]>();
    for (const taken of batch) {
      const facts = byTenant.get(taken.tenantId) ?? [];
      facts.push(taken);
      byTenant.set(taken.tenantId, facts);
    }
    const ends = await Promise.all([...byTenant].map(([tenantId, facts]) => appendTenant(tenantId, facts)));
    const end = ends.reduce(later, '');
    if (end !== '') behind.push(end);
    if (behind.length > BATCHES_AHEAD) await parts.reached(behind.shift() ?? '', WAIT_MS);
    options.onProgress({ accepted, refused });
  };

  let batch: Taken[] = [];
  let bytes = 0;
  for await (const line of linesOf(input)) {
    const taken = take(line, parts.now());
    batch.push(...taken);
    for (const one of taken) bytes += one.bytes;
    if (batch.length < BATCH_LINES && bytes < BATCH_BYTES) continue;
    await appendBatch(batch);
    batch = [];
    bytes = 0;
  }
  await appendBatch(batch);
  for (const end of behind) await parts.reached(end, WAIT_MS);
  return { accepted, refused };
};
