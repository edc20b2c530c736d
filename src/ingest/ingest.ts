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

/** What `ingest` needs to append reported facts, as NDJSON, to the activity streams of their tenants. */
export interface IngestParts extends LedgerLog {
  readonly ledger: Ledger;
  /** Whether the read models have applied this position. Waits for a while. */
  readonly reached: (position: Position, withinMs: number) => Promise<boolean>;
  /** Whether the read models contain this event of the tenant. */
  readonly isShown: (tenantId: string, eventId: string) => Promise<boolean>;
  readonly now: () => string;
}

export interface IngestOptions {
  readonly dryRun: boolean;
  /** Called in the order of the lines. */
  readonly onRefused: (line: number, reason: string) => void;
  readonly onProgress: (soFar: Ingested) => void;
}

export interface Ingested {
  /** The number of new facts. */
  readonly accepted: number;
  /** The number of facts not appended, because their ids were already in the log or earlier in the input. */
  readonly alreadyThere: number;
  readonly refused: number;
}

export interface Finished extends Ingested {
  /** Whether the read models contain every accepted fact. */
  readonly shown: boolean;
}

/** Limits how long an append holds the write lock of the log, since others write too. */
const MAX_APPEND_EVENTS = 500;
const APPEND_MS = 10_000;
const STATE_MS = 10_000;

interface ValidFact {
  readonly line: number;
  readonly tenantId: string;
  readonly event: NewEvent;
  readonly bytes: number;
}

/** Why a tenant cannot take facts. Not cached: it may be deleted while a long file is read. */
const tenantFault = async ({ ledger }: IngestParts, tenantId: string): Promise<string | undefined> => {
  const { status } = await ledger.stateOf(tenantId, monotonicMs() + STATE_MS);
  if (status === 'active') return undefined;
  return status === 'absent' ? `tenant ${tenantId} is unknown` : `tenant ${tenantId} is deleted`;
};

/** Appends to activity streams, and caches their last revisions. A duplicate is harmless: events count once by id. */
const appender = ({ log, streams }: IngestParts) => {
  const ends = new Map<string, number>();
  return async (tenantId: string, events: readonly NewEvent[]): Promise<Position> => {
    const stream = streams.activity(tenantId);
    const { revision, position } = await appendToEnd(log, stream, events, ends.get(stream), APPEND_MS);
    ends.set(stream, revision);
    return position;
  };
};

/** Splits the facts of one tenant, in order, into appends of the maximum size. */
function* appendsOf(
  facts: readonly ValidFact[],
): Generator<{ readonly tenantId: string; readonly events: readonly NewEvent[] }> {
  let events: NewEvent[] = [];
  let size = 0;
  for (const [at, { tenantId, event, bytes }] of facts.entries()) {
    events.push(event);
    size += bytes;
    const next = facts[at + 1];
    if (next !== undefined && events.length < MAX_APPEND_EVENTS && size + next.bytes <= MAX_APPEND_BYTES)
      continue;
    yield { tenantId, events };
    events = [];
    size = 0;
  }
}

/** More than can be appended ahead of the read models. */
const MAX_RECENT = 20_000;

const later = (a: Position, b: Position): Position => (a > b ? a : b);

/** One run over the input, with its results so far. */
interface Run extends IngestParts, IngestOptions {
  readonly append: ReturnType<typeof appender>;
  /** The ids that this process appended recently, which the read models may not contain yet. */
  readonly recent: BoundedCache<true>;
  refusals: { readonly line: number; readonly reason: string }[];
  accepted: number;
  alreadyThere: number;
  refused: number;
}

/** Sorted by line, because the refusals of a batch are found in two passes. */
const reportRefusals = (run: Run): void => {
  run.refused += run.refusals.length;
  for (const { line, reason } of run.refusals.toSorted((a, b) => a.line - b.line))
    run.onRefused(line, reason);
  run.refusals = [];
};

const validate = (run: Run, line: Line, at: string): readonly ValidFact[] => {
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

/** The given facts, or none if their tenant cannot take facts. */
const admitted = async (
  run: Run,
  tenantId: string,
  facts: readonly ValidFact[],
): Promise<readonly ValidFact[]> => {
  const reason = await tenantFault(run, tenantId);
  if (reason === undefined) return facts;
  for (const { line } of facts) run.refusals.push({ line, reason });
  return [];
};

/** The facts not in the log yet, as far as known. A duplicate that gets through is harmless. */
const onlyNew = async (run: Run, facts: readonly ValidFact[]): Promise<readonly ValidFact[]> => {
  const fresh: ValidFact[] = [];
  for (const fact of facts) {
    const id = `${fact.tenantId} ${fact.event.id}`;
    if (run.recent.get(id) === undefined && !(await run.isShown(fact.tenantId, fact.event.id)))
      fresh.push(fact);
    run.recent.put(id, true);
  }
  run.alreadyThere += facts.length - fresh.length;
  return fresh;
};

const appendTenant = async (run: Run, facts: readonly ValidFact[]): Promise<Position> => {
  let position = '';
  for (const { tenantId, events } of appendsOf(facts)) {
    if (!run.dryRun) position = await run.append(tenantId, events);
    run.accepted += events.length;
  }
  return position;
};

/** Checks all tenants before appending to any, so that the log can commit the appends as one group. */
const appendBatch = async (run: Run, batch: readonly ValidFact[]): Promise<Position> => {
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
    const batch = lines.flatMap((line) => validate(run, line, at));
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
