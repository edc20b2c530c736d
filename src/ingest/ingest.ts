import { boundedCache, type BoundedCache } from '../ledger/folds';
import { BACKGROUND_MS, isoNow, monotonicMs } from '../async/clock';
import { MAX_APPEND_BYTES, type NewEvent, type Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import { groupedBy } from '../grouping';
import type { Ledger } from '../ledger/ledger';
import { settleAll } from '../async/settle-all';
import { onceAppender, type AppendedOnce } from './append-once';
import { readFact } from './fact-line';
import { linesOf, type Line } from './lines';
import { pace } from './pace';
import { withoutRetry, type Retry } from './retry';

/** What `ingest` needs to append reported facts, as NDJSON, to the activity streams of their tenants. */
interface IngestDependencies extends LedgerLog {
  readonly ledger: Ledger;
  /** Whether the read models have applied this position. Waits for a while. */
  readonly reached: (position: Position, withinMs: number) => Promise<boolean>;
  /** What the read models show of the activity stream of a tenant. */
  readonly shown: (tenantId: string) => Promise<ShownActivity>;
}

export interface ShownActivity {
  /** The last revision that they contain, or -1. */
  readonly revision: number;
  /** Whether they contain this event. Sees at least everything up to that revision. */
  readonly has: (eventId: string) => Promise<boolean>;
}

export interface IngestOptions {
  readonly dryRun: boolean;
  /** Called in the order of the lines. */
  readonly onRefused: (line: number, reason: string) => void;
  readonly onProgress: (soFar: Ingested) => void;
  readonly withRetry?: Retry;
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
  /** Why the rest of the input was not ingested. */
  readonly failure?: Error;
}

/** Limits how long others wait, for the lock of the log and until their own writes are shown. */
const MAX_BATCH = 64;

/** Each may be a round trip. More would wait for each other's connections. */
const ASKED_AT_ONCE = 16;

/** More than can be appended ahead of the read models. */
const MAX_RECENT = 20_000;

interface ValidFact {
  readonly line: number;
  readonly tenantId: string;
  readonly event: NewEvent;
  readonly bytes: number;
}

/** One run over the input, with its results so far. */
interface Run extends IngestDependencies, IngestOptions {
  readonly withRetry: Retry;
  readonly appendOnce: (
    tenantId: string,
    events: readonly NewEvent[],
    shown: number,
  ) => Promise<AppendedOnce>;
  /** The newest ids of the input, which a dry run finds nowhere else. */
  readonly recent: BoundedCache<true>;
  refusals: { readonly line: number; readonly reason: string }[];
  readonly totals: { -readonly [Name in keyof Ingested]: number };
}

/** Sorted by line, because the refusals of a batch are found in two passes. */
const reportRefusals = (run: Run): void => {
  run.totals.refused += run.refusals.length;
  for (const { line, reason } of run.refusals.toSorted((a, b) => a.line - b.line))
    run.onRefused(line, reason);
  run.refusals = [];
};

const refuse = (run: Run, line: number, reason: string): readonly [] => {
  run.refusals.push({ line, reason });
  return [];
};

const validate = (run: Run, line: Line, at: string): readonly ValidFact[] => {
  if ('fault' in line) return refuse(run, line.number, line.fault);
  if (line.text.trim() === '') return [];
  const fact = readFact(line.text, at);
  return fact.status === 'good' ? [{ line: line.number, ...fact }] : refuse(run, line.number, fact.reason);
};

/** Why a tenant cannot take facts. Not cached: it may be deleted while a long file is read. */
const tenantFault = async ({ ledger, withRetry }: Run, tenantId: string): Promise<string | undefined> => {
  const ask = () => ledger.ask(tenantId, monotonicMs() + BACKGROUND_MS, (tenant) => tenant.status);
  const status = await withRetry(ask);
  if (status === 'active') return undefined;
  return status === 'absent' ? `tenant ${tenantId} is unknown` : `tenant ${tenantId} is deleted`;
};

/** The facts of one tenant that the read models did not show when they showed everything up to a revision. */
interface Unshown {
  readonly tenantId: string;
  readonly facts: readonly ValidFact[];
  readonly shown: number;
}

const unshownOf = async (run: Run, tenantId: string, facts: readonly ValidFact[]): Promise<Unshown> => {
  const reason = await tenantFault(run, tenantId);
  if (reason !== undefined) {
    for (const { line } of facts) refuse(run, line, reason);
    return { tenantId, facts: [], shown: -1 };
  }
  const { revision: shown, has } = await run.withRetry(() => run.shown(tenantId));
  const isNewHere = ({ event }: ValidFact): boolean => {
    const id = `${tenantId} ${event.id}`;
    const isKnown = run.recent.get(id) !== undefined;
    run.recent.put(id, true);
    return !isKnown;
  };
  const asked = facts.filter(isNewHere);
  const unshown: ValidFact[] = [];
  for (let from = 0; from < asked.length; from += ASKED_AT_ONCE) {
    const some = asked.slice(from, from + ASKED_AT_ONCE);
    const there = await run.withRetry(() => settleAll(some.map(({ event }) => has(event.id))));
    unshown.push(...some.filter((_, at) => there[at] === false));
  }
  run.totals.alreadyThere += facts.length - unshown.length;
  return { tenantId, facts: unshown, shown };
};

/** Splits facts, in order, into appends of the maximum size. */
function* appendsOf(facts: readonly ValidFact[]): Generator<readonly NewEvent[]> {
  let events: NewEvent[] = [];
  let size = 0;
  for (const { event, bytes } of facts) {
    if (events.length > 0 && size + bytes > MAX_APPEND_BYTES) {
      yield events;
      [events, size] = [[], 0];
    }
    events.push(event);
    size += bytes;
  }
  if (events.length > 0) yield events;
}

const appendTenant = async (run: Run, { tenantId, facts, shown }: Unshown): Promise<Position> => {
  let last = '';
  for (const events of appendsOf(facts)) {
    const { accepted, position } = await run.appendOnce(tenantId, events, shown);
    run.totals.accepted += accepted;
    run.totals.alreadyThere += events.length - accepted;
    last = position;
  }
  return last;
};

/** The facts of a batch that are to be appended. */
const checkBatch = (run: Run, batch: readonly ValidFact[]): Promise<readonly Unshown[]> => {
  const byTenant = groupedBy(batch, ({ tenantId }) => tenantId);
  return settleAll(Array.from(byTenant, ([tenantId, facts]) => unshownOf(run, tenantId, facts)));
};

/** Appends to all tenants at once, so that the log can commit that as one group. */
const appendBatch = async (
  run: Run,
  unshown: readonly Unshown[],
  { appended }: ReturnType<typeof pace>,
): Promise<void> => {
  const ends = await settleAll(unshown.map((facts) => appendTenant(run, facts)));
  const end = ends.toSorted().at(-1) ?? '';
  if (end !== '') await appended(end);
};

/** Reads and checks a batch while the one before it is appended. */
const ingestAll = async (
  run: Run,
  input: AsyncIterable<Buffer | string>,
  paced: ReturnType<typeof pace>,
): Promise<void> => {
  let appending = Promise.resolve();
  try {
    for await (const lines of linesOf(input)) {
      const at = isoNow();
      const facts = lines.flatMap((line) => validate(run, line, at));
      for (let from = 0; from < facts.length; from += MAX_BATCH) {
        const unshown = await checkBatch(run, facts.slice(from, from + MAX_BATCH));
        await appending;
        appending = appendBatch(run, unshown, paced);
        appending.catch(() => undefined);
      }
      reportRefusals(run);
      run.onProgress({ ...run.totals });
    }
  } finally {
    await appending;
  }
};

/** Never rejects: what was ingested is reported whatever happens. */
export const ingest = async (
  input: AsyncIterable<Buffer | string>,
  dependencies: IngestDependencies,
  options: IngestOptions,
): Promise<Finished> => {
  const { withRetry = withoutRetry, dryRun } = options;
  const { log, streams, reached } = dependencies;
  const appendOnce = onceAppender(log, withRetry);
  const run: Run = {
    ...dependencies,
    ...options,
    withRetry,
    appendOnce: async (tenantId, events, shown) =>
      dryRun
        ? { accepted: events.length, position: '' }
        : appendOnce(streams.activity(tenantId), events, shown),
    refusals: [],
    totals: { accepted: 0, alreadyThere: 0, refused: 0 },
    recent: boundedCache(MAX_RECENT),
  };
  const paced = pace(reached);
  try {
    await ingestAll(run, input, paced);
    return { ...run.totals, shown: await paced.finished() };
  } catch (failure) {
    reportRefusals(run);
    return { ...run.totals, shown: false, failure: failure as Error };
  }
};
