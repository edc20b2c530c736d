import { beforeDeadline, monotonicMs } from '../async/clock';
import { fairSlices, slicedLog, type Slice } from '../audit/fair-slices';
import type { ServiceIdentity } from '../domain/services';
import { onceAppender } from '../event-log/append-once';
import type { EventLog, Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/streams';
import { codeOf, fault, isAway, moreOf } from '../fault';
import { boundedCache } from '../ledger/folds';
import { streamQueue, type Ledger } from '../ledger/ledger';
import type { KnownLiveSet } from '../projecting/live-set';
import { TIMES } from '../times';
import { checkFact, factsIn, type CheckedFact } from './fact-line';
import { linesOf } from './lines';
import {
  inOrder,
  newFact,
  recordFacts,
  refuse,
  type Recorder,
  type Tally,
  type ValidFact,
} from './record-facts';

/** Facts that a service reports over HTTP: what `ingest` takes, within the time of a request. */

export interface FactsRequest {
  readonly service: Pick<ServiceIdentity, 'id' | 'name'>;
  /** ISO 8601. */
  readonly at: string;
  /** When the response is due, on the monotonic clock. */
  readonly deadline: number;
  /** NDJSON as sent, or parsed values. */
  readonly facts: Buffer | readonly unknown[];
}

export interface ReportedFacts extends Readonly<Tally> {
  /** The tenants that are not known to be shown yet, and up to where they must be. */
  readonly toShow: ReadonlyMap<string, Position>;
}

interface ReportingDependencies extends LedgerLog {
  readonly ledger: Pick<Ledger, 'ask' | 'exists'>;
  readonly readModels: Pick<KnownLiveSet, 'query'>;
}

const MAX_FACTS = 1_000;
/** So many are appended at a time, since what others write waits for them. */
const MAX_BATCH = 32;
/** Lines are split off this much at a time. */
const CHUNK_BYTES = 65_536;

const mustHaveTime = (deadline: number): number => {
  const left = deadline - TIMES.answerMs - monotonicMs();
  if (left <= 0) throw fault('log_unavailable', 'No time was left to write.');
  return left;
};

async function* chunksOf(body: Buffer): AsyncGenerator<Buffer> {
  for (let from = 0; from < body.length; from += CHUNK_BYTES) yield body.subarray(from, from + CHUNK_BYTES);
}

async function* checkedFacts({
  facts,
  at,
  service: { id, name },
}: FactsRequest): AsyncGenerator<CheckedFact> {
  const receipt = { at, service: { id, name } };
  if (Buffer.isBuffer(facts))
    for await (const lines of linesOf(chunksOf(facts))) yield* factsIn(lines, receipt);
  else for (const [index, value] of facts.entries()) yield { line: index + 1, ...checkFact(value, receipt) };
}

/** Before anything is appended: a request with too many facts is refused as a whole. */
const checkFacts = async (request: FactsRequest, tally: Tally, pace: () => Promise<unknown>) => {
  const seen = boundedCache<true>(MAX_FACTS);
  const valid: ValidFact[] = [];
  let count = 0;
  for await (const fact of checkedFacts(request)) {
    count += 1;
    if (count > MAX_FACTS) throw fault('body_too_large', `There are more than ${MAX_FACTS} facts.`);
    valid.push(...newFact(fact, tally, seen));
    await pace();
  }
  return valid;
};

const isOfTenant = (error: unknown): boolean =>
  codeOf(error) === 'tenant_unreadable' ||
  codeOf(error) === 'history_missing' ||
  moreOf(error)['isLoading'] === true;

/** What is wrong with a tenant, or with a store, and certainly left nothing in the log. */
const isTrouble = (error: unknown): boolean =>
  isOfTenant(error) ||
  codeOf(error) === 'log_set_back' ||
  (isAway(error) && codeOf(error) !== 'outcome_unknown');

/** Fails as a whole only if the outcome of an append is unknown, for a bug, or if a store left nothing decided. */
const mustBeTold = (troubles: readonly Error[], { refused, accepted, alreadyThere }: Tally): void => {
  const isDecided = accepted + alreadyThere > 0 || refused.some(({ retry }) => !retry);
  const graver = troubles.find((error) => !isTrouble(error));
  const ofStore = isDecided ? undefined : troubles.find((error) => !isOfTenant(error));
  const failure = graver ?? ofStore;
  if (failure !== undefined) throw failure;
};

/** The log as one request uses it: it reads in slices, and appends in the time that is left. */
const logOf = ({ log, streams }: LedgerLog, deadline: number, next: () => Promise<Slice>) => {
  const shownBy = new Map<string, Position>();
  const append: EventLog['append'] = async (stream, events, expected) => {
    const done = await log.append(stream, events, expected, mustHaveTime(deadline));
    if (done.isShown === true) shownBy.set(stream, done.position);
    return done;
  };
  return { log: { ...slicedLog({ log, streams }, next).log, append }, shownBy };
};

export type ReportFacts = (request: FactsRequest) => Promise<ReportedFacts>;

export const reportingFacts = (dependencies: ReportingDependencies): ReportFacts => {
  const { ledger, readModels, streams } = dependencies;
  const nextSlice = fairSlices();
  const inTurn = streamQueue();
  return async (request) => {
    const { deadline, service } = request;
    const endsAt = deadline - TIMES.answerMs;
    const next = (): Promise<Slice> => {
      mustHaveTime(deadline);
      return nextSlice(service.id);
    };
    let slice = await next();
    const { log, shownBy } = logOf(dependencies, deadline, next);
    const appendOnce = onceAppender(log, (action) => action());
    const tally: Tally = { accepted: 0, alreadyThere: 0, refused: [] };
    const toShow = new Map<string, Position>();
    const troubles: Error[] = [];

    const recorder: Recorder = {
      maxBatch: MAX_BATCH,
      lookUp: async (tenantId, query) => {
        const late = () => fault('read_models_unavailable', 'The read models did not answer in time.');
        return (await beforeDeadline(readModels.query(tenantId, query), endsAt, late)).value;
      },
      statusOf: async (tenantId) =>
        (await ledger.exists(tenantId, deadline))
          ? ledger.ask(tenantId, deadline, ({ status }) => status)
          : 'absent',
      append: async (tenantId, events, shown) => {
        const stream = streams.activity(tenantId);
        const append = () => appendOnce(stream, events, shown);
        const { accepted, position } = await inTurn(stream, endsAt, append);
        if (shownBy.get(stream) === position) toShow.delete(tenantId);
        else if (position !== '') toShow.set(tenantId, position);
        return accepted;
      },
      pace: async () => {
        if (slice.isOver()) slice = await next();
      },
      fail: (facts, error) => {
        troubles.push(error);
        const why = (tenantId: string) => `tenant ${tenantId} cannot take facts now: send them again`;
        refuse(tally, facts, 'tenant_unavailable', why, true);
      },
    };
    const valid = await checkFacts(request, tally, recorder.pace);
    await recordFacts(recorder, valid, tally).catch((error: unknown) => recorder.fail(valid, error as Error));
    mustBeTold(troubles, tally);
    return { ...tally, refused: inOrder(tally.refused), toShow };
  };
};
