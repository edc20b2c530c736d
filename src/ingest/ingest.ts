import { condition, isoNow, monotonicMs, pause } from '../async/clock';
import { onceAppender, type Retry } from '../event-log/append-once';
import type { Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/streams';
import { boundedCache } from '../ledger/folds';
import type { Ledger } from '../ledger/ledger';
import type { KnownLiveSet } from '../projecting/live-set';
import type { Show } from '../projecting/show-tenants';
import { TIMES } from '../times';
import { factsIn } from './fact-line';
import { linesOf } from './lines';
import { inOrder, newFact, recordFacts, type Recorder, type Tally, type ValidFact } from './record-facts';

interface IngestDependencies extends LedgerLog {
  readonly ledger: Ledger;
  readonly show: Show;
  readonly live: Pick<KnownLiveSet, 'query'>;
}

export interface IngestOptions {
  readonly dryRun: boolean;
  /** Called in the order of the lines. */
  readonly onRefused: (line: number, reason: string) => void;
  readonly onProgress: (soFar: Ingested) => void;
  readonly withRetry?: Retry;
}

export type Ingested = Readonly<Record<'accepted' | 'alreadyThere' | 'refused', number>>;

export interface Finished extends Ingested {
  /** Whether the read models contain every accepted fact. */
  readonly shown: boolean;
  /** Why the rest of the input was not ingested. */
  readonly failure?: Error;
}

/** Limits how long others wait for the lock of the log. */
const MAX_BATCH = 500;

/** How many facts may be appended ahead of the read models. Their ids are in memory. */
const MAX_AHEAD = 20_000;

/** Shows what was appended while more is. */
const showingBehind = ({ show, live }: IngestDependencies, withRetry: Retry) => {
  /** What cannot be shown because the read models are away is shown late. */
  const isShown = (tenantId: string, position: Position): Promise<boolean> =>
    show(tenantId, position, TIMES.paceMs).catch(() => false);
  let ahead = 0;
  const { notify, wait } = condition();
  const late = new Map<string, Position>();
  const isParked = async (tenantId: string): Promise<boolean> =>
    (await withRetry(() => live.query(tenantId, async () => undefined))).parked !== undefined;

  return {
    hasRoom: async (): Promise<void> => {
      while (ahead > MAX_AHEAD) await wait();
    },
    add: async (tenantId: string, position: Position, facts: number): Promise<void> => {
      ahead += facts;
      if (!(await isShown(tenantId, position))) late.set(tenantId, position);
      ahead -= facts;
      notify();
    },
    /** Whether the read models show everything that was appended, at last. */
    areShown: async (): Promise<boolean> => {
      while (ahead > 0) await wait();
      const end = monotonicMs() + TIMES.paceMs;
      for (const [tenantId, position] of late)
        while (!(await isShown(tenantId, position))) {
          if (await isParked(tenantId)) break;
          if (monotonicMs() >= end) return false;
          await pause(TIMES.retryMs);
        }
      return true;
    },
  };
};

/** Never rejects: what was ingested is reported whatever happens. */
export const ingest = async (
  input: AsyncIterable<Buffer | string>,
  dependencies: IngestDependencies,
  { dryRun, onRefused, onProgress, withRetry = (action) => action() }: IngestOptions,
): Promise<Finished> => {
  const { log, streams, ledger, live } = dependencies;
  const behind = showingBehind(dependencies, withRetry);
  const appendOnce = onceAppender(log, withRetry);
  /** A dry run finds these ids nowhere else. */
  const seen = boundedCache<true>(MAX_AHEAD);
  const totals = { accepted: 0, alreadyThere: 0, refused: 0 };

  const recorder: Recorder = {
    maxBatch: MAX_BATCH,
    lookUp: async (tenantId, query) => (await withRetry(() => live.query(tenantId, query))).value,
    // Not cached: a tenant may be deleted while a long file is read.
    statusOf: (tenantId) =>
      withRetry(() => ledger.ask(tenantId, monotonicMs() + TIMES.backgroundMs, ({ status }) => status)),
    append: async (tenantId, events, shown) => {
      if (dryRun) return events.length;
      await behind.hasRoom();
      const { accepted, position } = await appendOnce(streams.activity(tenantId), events, shown);
      if (position !== '') void behind.add(tenantId, position, events.length);
      return accepted;
    },
    pace: async () => undefined,
    fail: (_, error) => {
      throw error;
    },
  };
  const record = async (facts: readonly ValidFact[], tally: Tally): Promise<void> => {
    await recordFacts(recorder, facts, tally).finally(() => {
      totals.accepted += tally.accepted;
      totals.alreadyThere += tally.alreadyThere;
      totals.refused += tally.refused.length;
      for (const { line, reason } of inOrder(tally.refused)) onRefused(line, reason);
    });
    onProgress({ ...totals });
  };

  let recording = Promise.resolve();
  try {
    for await (const lines of linesOf(input)) {
      const tally: Tally = { accepted: 0, alreadyThere: 0, refused: [] };
      const facts = [...factsIn(lines, { at: isoNow() })].flatMap((fact) => newFact(fact, tally, seen));
      await recording;
      recording = record(facts, tally);
      recording.catch(() => undefined);
    }
    await recording;
    return { ...totals, shown: await behind.areShown() };
  } catch (failure) {
    await recording.catch(() => undefined);
    return { ...totals, shown: false, failure: failure as Error };
  }
};
