import { monotonicMs } from '../clock';
import {
  LARGEST_APPEND,
  type EventLog,
  type Expected,
  type NewEvent,
  type Position,
} from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { codeOf, type Fault } from '../fault';
import type { Ledger } from '../ledger/ledger';
import { readFact } from './fact-line';
import { linesOf, type Line } from './lines';

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

/** An append holds few events, so that live followers keep up. */
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

/** What keeps a tenant from taking facts, or undefined. It may be deleted while a long file is read. */
const tenantFault = async ({ ledger }: IngestParts, tenantId: string): Promise<string | undefined> => {
  const status = await ledger.askHead(tenantId, (fold) => fold.tenant.status, monotonicMs() + ASK_MS);
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

/** As many as one append may hold, in order. */
function* appendsOf(facts: readonly Taken[]): Generator<readonly NewEvent[]> {
  let events: NewEvent[] = [];
  let size = 0;
  for (const { event, bytes } of facts) {
    if (events.length === APPEND_EVENTS || (events.length > 0 && size + bytes > LARGEST_APPEND)) {
      yield events;
      events = [];
      size = 0;
    }
    events.push(event);
    size += bytes;
  }
  if (events.length > 0) yield events;
}

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
    if ('fault' in line) {
      refuse(line.number, line.fault);
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
    for (const events of appendsOf(facts)) {
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

  for await (const lines of linesOf(input)) {
    const at = parts.now();
    await appendBatch(lines.flatMap((line) => take(line, at)));
  }
  for (const end of behind) await parts.reached(end, WAIT_MS);
  return { accepted, refused };
};
