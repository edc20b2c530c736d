import { condition, isoNow, monotonicMs, pause, type Condition } from '../async/clock';
import { settleAll } from '../async/concurrency';
import { onceAppender, type Retry } from '../event-log/append-once';
import { MAX_APPEND_BYTES, type NewEvent, type Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/streams';
import { boundedCache, type BoundedCache } from '../ledger/folds';
import type { Ledger } from '../ledger/ledger';
import { findParked } from '../projecting/parked-tenants';
import type { Show } from '../projecting/show-tenants';
import type { ReadModelSet } from '../read-models/read-models';
import { TIMES } from '../times';
import { readFact } from './fact-line';
import { linesOf, type Line } from './lines';
import { shownFacts, tenantRefusal, type TenantFact } from './tenant-facts';

/** What `ingest` needs to append reported facts, as NDJSON, to the activity streams of their tenants. */
interface IngestDependencies extends LedgerLog {
  readonly ledger: Ledger;
  readonly show: Show;
  readonly reader: () => Promise<Pick<ReadModelSet, 'load' | 'progress'>>;
}

export interface IngestOptions {
  readonly dryRun: boolean;
  /** Called in the order of the lines. */
  readonly onRefused: (line: number, reason: string) => void;
  readonly onProgress: (soFar: Ingested) => void;
  readonly withRetry?: Retry;
}

export interface Ingested {
  readonly accepted: number;
  /** The number of facts not appended, because their ids were already in the log or earlier in the input. */
  readonly alreadyThere: number;
  readonly refused: number;
}

export interface Finished extends Ingested {
  /** Whether the read models contain every accepted fact. */
  readonly shown: boolean;
  readonly failure?: Error;
}

/** Limits how long others wait for the lock of the log. */
const MAX_BATCH = 500;

/** How many facts may be appended ahead of the read models. Their ids are in memory. */
const MAX_AHEAD = 20_000;

interface ValidFact extends TenantFact {
  readonly line: number;
  readonly bytes: number;
}

interface Run extends IngestDependencies, IngestOptions {
  readonly withRetry: Retry;
  readonly appendOnce: ReturnType<typeof onceAppender>;
  /** The newest ids of the input, which a dry run finds nowhere else. */
  readonly recent: BoundedCache<true>;
  refusals: { readonly line: number; readonly reason: string }[];
  readonly totals: { -readonly [Name in keyof Ingested]: number };
  /** How many facts were appended and are not shown yet. */
  ahead: number;
  readonly shownMore: Condition;
  /** The tenants that were not shown in time, and up to where. */
  readonly late: Map<string, Position>;
}

/** Sorted by line, because the refusals of a batch are found in two passes. */
const reportRefusals = (run: Run): void => {
  run.totals.refused += run.refusals.length;
  for (const { line, reason } of run.refusals.toSorted((a, b) => a.line - b.line))
    run.onRefused(line, reason);
  run.refusals = [];
};

/** Valid facts in batches that fit into an append. */
function* batchesOf(run: Run, lines: readonly Line[]): Generator<readonly ValidFact[]> {
  const at = isoNow();
  let batch: ValidFact[] = [];
  let size: number = 0;
  for (const { number: line, ...given } of lines) {
    if ('text' in given && given.text.trim() === '') continue;
    const fact = 'fault' in given ? given : readFact(given.text, { at });
    if ('fault' in fact) {
      run.refusals.push({ line, reason: fact.fault });
      continue;
    }
    if (batch.length === MAX_BATCH || size + fact.bytes > MAX_APPEND_BYTES) {
      yield batch;
      batch = [];
      size = 0;
    }
    batch.push({ line, ...fact });
    size += fact.bytes;
  }
  if (batch.length > 0) yield batch;
}

/** Why a tenant cannot take facts. Not cached: it may be deleted while a long file is read. */
const tenantFault = async ({ ledger, withRetry }: Run, tenantId: string): Promise<string | undefined> => {
  const ask = () => ledger.ask(tenantId, monotonicMs() + TIMES.backgroundMs, (tenant) => tenant.status);
  return tenantRefusal(await withRetry(ask), tenantId)?.reason;
};

interface Unshown {
  readonly tenantId: string;
  readonly events: readonly NewEvent[];
  readonly shown: number;
}

const isNewInInput = ({ recent }: Run, { tenantId, event }: ValidFact): boolean => {
  const id = `${tenantId} ${event.id}`;
  const isKnown = recent.get(id) === true;
  recent.put(id, true);
  return !isKnown;
};

/** Of the facts of a batch, those that are new in the input and whose tenants can take facts. */
const acceptable = async (run: Run, batch: readonly ValidFact[]): Promise<readonly ValidFact[]> => {
  const tenants = new Set(batch.map(({ tenantId }) => tenantId));
  const judged = Array.from(
    tenants,
    async (tenantId) => [tenantId, await tenantFault(run, tenantId)] as const,
  );
  const reasons = new Map(await settleAll(judged));
  return batch.filter((fact) => {
    const reason = reasons.get(fact.tenantId);
    if (reason !== undefined) run.refusals.push({ line: fact.line, reason });
    const isNew = reason === undefined && isNewInInput(run, fact);
    if (reason === undefined && !isNew) run.totals.alreadyThere += 1;
    return isNew;
  });
};

const checkBatch = async (run: Run, batch: readonly ValidFact[]): Promise<readonly Unshown[]> => {
  const asked = await acceptable(run, batch);
  const { revisions, there } = await run.withRetry(async () => shownFacts(await run.reader(), asked));
  run.totals.alreadyThere += there.size;
  return Array.from(revisions, ([tenantId, shown]) => {
    const own = asked.filter((fact) => fact.tenantId === tenantId && !there.has(fact));
    return { tenantId, events: own.map(({ event }) => event), shown };
  });
};

/** Shows what was appended while the next batches are. */
const showBehind = async (run: Run, tenantId: string, position: Position, facts: number): Promise<void> => {
  run.ahead += facts;
  if (!(await run.show(tenantId, position, TIMES.paceMs))) run.late.set(tenantId, position);
  run.ahead -= facts;
  run.shownMore.notify();
};

const appendTenant = async (run: Run, { tenantId, events, shown }: Unshown): Promise<void> => {
  if (events.length === 0) return;
  if (run.dryRun) {
    run.totals.accepted += events.length;
    return;
  }
  const { accepted, position } = await run.appendOnce(run.streams.activity(tenantId), events, shown);
  run.totals.accepted += accepted;
  run.totals.alreadyThere += events.length - accepted;
  if (position !== '') void showBehind(run, tenantId, position, events.length);
};

/** Appends to all tenants at once, so that the log can commit that as one group. */
const appendBatch = async (run: Run, unshown: readonly Unshown[]): Promise<void> => {
  while (run.ahead > MAX_AHEAD) await run.shownMore.wait();
  await settleAll(unshown.map((facts) => appendTenant(run, facts)));
};

const areShown = async (run: Run): Promise<boolean> => {
  while (run.ahead > 0) await run.shownMore.wait();
  const end = monotonicMs() + TIMES.paceMs;
  for (const [tenantId, position] of run.late)
    while (!(await run.show(tenantId, position, TIMES.paceMs))) {
      const parked = await run.withRetry(async () => findParked(await run.reader(), tenantId));
      if (parked !== undefined) break;
      if (monotonicMs() >= end) return false;
      await pause(TIMES.retryMs);
    }
  return true;
};

/** Reads and checks a batch while the one before it is appended. */
const ingestAll = async (run: Run, input: AsyncIterable<Buffer | string>): Promise<void> => {
  let appending = Promise.resolve();
  try {
    for await (const lines of linesOf(input)) {
      for (const batch of batchesOf(run, lines)) {
        const unshown = await checkBatch(run, batch);
        await appending;
        appending = appendBatch(run, unshown);
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
  const { withRetry = (action) => action() } = options;
  const run: Run = {
    ...dependencies,
    ...options,
    withRetry,
    appendOnce: onceAppender(dependencies.log, withRetry),
    recent: boundedCache(MAX_AHEAD),
    refusals: [],
    totals: { accepted: 0, alreadyThere: 0, refused: 0 },
    ahead: 0,
    shownMore: condition(),
    late: new Map(),
  };
  try {
    await ingestAll(run, input);
    return { ...run.totals, shown: await areShown(run) };
  } catch (failure) {
    reportRefusals(run);
    return { ...run.totals, shown: false, failure: failure as Error };
  }
};
