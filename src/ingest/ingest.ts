import { boundedCache, type BoundedCache } from '../bounded-cache';
import { monotonicMs } from '../clock';
import { appendToEnd } from '../event-log/append-to-end';
import { MAX_APPEND_BYTES, type NewEvent, type Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import { groupedBy } from '../grouping';
import type { Ledger } from '../ledger/ledger';
import { readFact } from './fact-line';
import { linesOf, type Line } from './lines';
import { pace } from './pace';

/** Takes reported facts, one JSON object a line, into the activity streams of their tenants. */
export interface IngestParts extends LedgerLog {
  readonly ledger: Ledger;
  /** Do the read models show this position? Waits a while. */
  readonly reached: (position: Position, withinMs: number) => Promise<boolean>;
  /** Do the read models show this event of the tenant? */
  readonly isShown: (tenantId: string, eventId: string) => Promise<boolean>;
  readonly now: () => string;
}

export interface IngestOptions {
  readonly dryRun: boolean;
  /** In the order of the lines. */
  readonly onRefused: (line: number, reason: string) => void;
  readonly onProgress: (soFar: Ingested) => void;
}

export interface Ingested {
  /** New ones. */
  readonly accepted: number;
  /** Their ids were in the log before, or earlier in the input: they were not appended again. */
  readonly alreadyThere: number;
  readonly refused: number;
}

export interface Finished extends Ingested {
  /** The read models show everything that was accepted. */
  readonly shown: boolean;
}

/** An append holds the log's write lock: others want to write too. */
const APPEND_EVENTS = 500;
const APPEND_MS = 10_000;
const ASK_MS = 10_000;

interface Taken {
  readonly line: number;
  readonly tenantId: string;
  readonly event: NewEvent;
  readonly bytes: number;
}

/** What keeps a tenant from taking facts, or undefined. It may be deleted while a long file is read. */
const tenantFault = async ({ ledger }: IngestParts, tenantId: string): Promise<string | undefined> => {
  const { status } = await ledger.stateOf(tenantId, monotonicMs() + ASK_MS);
  if (status === 'active') return undefined;
  return status === 'absent' ? `tenant ${tenantId} is unknown` : `tenant ${tenantId} is deleted`;
};

/** Appends to activity streams, and remembers where each of them ends. The same ids again are harmless: a second copy counts nowhere. */
const appender = ({ log, streams }: IngestParts) => {
  const ends = new Map<string, number>();
  return async (tenantId: string, events: readonly NewEvent[]): Promise<Position> => {
    const stream = streams.activity(tenantId);
    const { revision, position } = await appendToEnd(log, stream, events, ends.get(stream), APPEND_MS);
    ends.set(stream, revision);
    return position;
  };
};

/** One tenant's facts in order, as many at a time as one append may hold. */
function* appendsOf(
  facts: readonly Taken[],
): Generator<{ readonly tenantId: string; readonly events: readonly NewEvent[] }> {
  let events: NewEvent[] = [];
  let size = 0;
  for (const [at, { tenantId, event, bytes }] of facts.entries()) {
    events.push(event);
    size += bytes;
    const next = facts[at + 1];
    if (next !== undefined && events.length < APPEND_EVENTS && size + next.bytes <= MAX_APPEND_BYTES)
      continue;
    yield { tenantId, events };
    events = [];
    size = 0;
  }
}

/** More events than may be appended before the read models show them. */
const MAX_RECENT = 20_000;

const later = (a: Position, b: Position): Position => (a > b ? a : b);

/** One run over the input, and what it has found so far. */
interface Run extends IngestParts, IngestOptions {
  readonly append: ReturnType<typeof appender>;
  /** What this process has appended lately: the read models may not show it yet. */
  readonly recent: BoundedCache<true>;
  refusals: { readonly line: number; readonly reason: string }[];
  accepted: number;
  alreadyThere: number;
  refused: number;
}

/** Those of a batch are found in two steps, so they are sorted when it is done. */
const reportRefusals = (run: Run): void => {
  run.refused += run.refusals.length;
  for (const { line, reason } of run.refusals.toSorted((a, b) => a.line - b.line))
    run.onRefused(line, reason);
  run.refusals = [];
};

const take = (run: Run, line: Line, at: string): readonly Taken[] => {
  if ('fault' in line) {
    run.refusals.push({ line: line.number, reason: line.fault });
    return [];
  }
  if (line.text.trim() === '') return [];
  const fact = readFact(line.text, at);
  if (fact.status === 'good') return [{ line: line.number, ...fact }];
  run.refusals.push({ line: line.number, reason: fact.reason });
  return [];
};

/** Those whose tenant takes facts. */
const admitted = async (run: Run, tenantId: string, facts: readonly Taken[]): Promise<readonly Taken[]> => {
  const reason = await tenantFault(run, tenantId);
  if (reason === undefined) return facts;
  for (const { line } of facts) run.refusals.push({ line, reason });
  return [];
};

/** Those that are not in the log yet, as far as that can be seen: a second copy would count nowhere. */
const onlyNew = async (run: Run, facts: readonly Taken[]): Promise<readonly Taken[]> => {
  const fresh: Taken[] = [];
  for (const fact of facts) {
    const id = `${fact.tenantId} ${fact.event.id}`;
    if (run.recent.get(id) === undefined && !(await run.isShown(fact.tenantId, fact.event.id)))
      fresh.push(fact);
    run.recent.put(id, true);
  }
  run.alreadyThere += facts.length - fresh.length;
  return fresh;
};

const appendTenant = async (run: Run, facts: readonly Taken[]): Promise<Position> => {
  let position = '';
  for (const { tenantId, events } of appendsOf(facts)) {
    if (!run.dryRun) position = await run.append(tenantId, events);
    run.accepted += events.length;
  }
  return position;
};

/** All tenants are asked for before any of them is appended to: then the appends are one group for the log. */
const appendBatch = async (run: Run, batch: readonly Taken[]): Promise<Position> => {
  const byTenant = groupedBy(batch, ({ tenantId }) => tenantId);
  const groups = await Promise.all(
    Array.from(byTenant, ([tenantId, facts]) => admitted(run, tenantId, facts)),
  );
  const fresh = await Promise.all(groups.map((facts) => onlyNew(run, facts)));
  const ends = await Promise.all(fresh.map((facts) => appendTenant(run, facts)));
  return ends.reduce(later, '');
};

export const ingest = async (
  input: AsyncIterable<Buffer | string>,
  parts: IngestParts,
  options: IngestOptions,
): Promise<Finished> => {
  const { appended, finished } = pace(parts.reached);
  const none = { refusals: [], accepted: 0, alreadyThere: 0, refused: 0 };
  const run: Run = {
    ...parts,
    ...options,
    ...none,
    append: appender(parts),
    recent: boundedCache(MAX_RECENT),
  };
  for await (const lines of linesOf(input)) {
    const at = parts.now();
    const batch = lines.flatMap((line) => take(run, line, at));
    const end = await appendBatch(run, batch);
    reportRefusals(run);
    if (end !== '') await appended(end, batch.length);
    const { accepted, alreadyThere, refused } = run;
    options.onProgress({ accepted, alreadyThere, refused });
  }
  const shown = await finished();
  const { accepted, alreadyThere, refused } = run;
  return { accepted, alreadyThere, refused, shown };
};
