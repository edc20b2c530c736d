import { beforeDeadline, monotonicMs } from '../async/clock';
import { settleAll } from '../async/concurrency';
import { fairSlices, slicedLog, type Slice } from '../audit/fair-slices';
import type { ServiceIdentity } from '../domain/services';
import { onceAppender } from '../event-log/append-once';
import { logFault, MAX_APPEND_BYTES, type EventLog, type Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/streams';
import { codeOf, fault, isAway, moreOf } from '../fault';
import { streamQueue, type Ledger } from '../ledger/ledger';
import type { KnownLiveSet } from '../projecting/live-set';
import { TIMES } from '../times';
import { checkFact, readFact, reasonText } from './fact-line';
import { linesOf } from './lines';
import { shownFacts, tenantRefusal, type TenantFact } from './tenant-facts';

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

export const factRefusals = ['invalid', 'unknown_tenant', 'deleted_tenant', 'tenant_unavailable'] as const;

interface RefusedFact {
  readonly line: number;
  readonly id?: string | undefined;
  readonly code: (typeof factRefusals)[number];
  readonly reason: string;
  readonly retry: boolean;
}

export interface ReportedFacts {
  readonly accepted: number;
  /** Their ids were in the log before, or earlier in the request. */
  readonly alreadyThere: number;
  readonly refused: readonly RefusedFact[];
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
const CHUNK_BYTES = 65_536;

interface ValidFact extends TenantFact {
  readonly line: number;
  readonly bytes: number;
}

/** One request. Nothing of it is kept. */
interface Run extends ReportingDependencies, FactsRequest {
  /** Gives way to others when the time of its slice is over, and throws when that of the request is. */
  readonly pace: () => Promise<unknown>;
  readonly inTurn: ReturnType<typeof streamQueue>;
  readonly appendOnce: ReturnType<typeof onceAppender>;
  /** By stream, up to where an append has shown it. */
  readonly shownBy: ReadonlyMap<string, Position>;
  readonly valid: ValidFact[];
  readonly refused: RefusedFact[];
  readonly toShow: Map<string, Position>;
  readonly troubles: Error[];
  accepted: number;
  alreadyThere: number;
}

const mustHaveTime = (deadline: number): number => {
  const left = deadline - TIMES.answerMs - monotonicMs();
  if (left <= 0) throw logFault('log_unavailable', 'No time was left to write.');
  return left;
};

const inTime = <T>({ deadline }: Pick<FactsRequest, 'deadline'>, answer: Promise<T>): Promise<T> =>
  beforeDeadline(answer, deadline - TIMES.answerMs, () =>
    fault('read_models_unavailable', 'The read models did not answer in time.'),
  );

async function* chunksOf(body: Buffer): AsyncGenerator<Buffer> {
  for (let from = 0; from < body.length; from += CHUNK_BYTES) yield body.subarray(from, from + CHUNK_BYTES);
}

async function* checkedFacts({ facts, at, service, pace }: Run) {
  const receipt = { at, service: { id: service.id, name: service.name } };
  if (!Buffer.isBuffer(facts)) {
    for (const [index, value] of facts.entries()) {
      await pace();
      yield { line: index + 1, ...checkFact(value, receipt) };
    }
    return;
  }
  for await (const lines of linesOf(chunksOf(facts)))
    for (const { number: line, ...given } of lines) {
      if ('text' in given && given.text.trim() === '') continue;
      await pace();
      yield { line, ...('fault' in given ? given : readFact(given.text, receipt)) };
    }
}

/** Before anything is appended: a request with too many facts is refused as a whole. */
const checkFacts = async (run: Run): Promise<void> => {
  const ids = new Set<string>();
  let count = 0;
  for await (const fact of checkedFacts(run)) {
    count += 1;
    if (count > MAX_FACTS) throw fault('body_too_large', `There are more than ${MAX_FACTS} facts.`);
    if ('fault' in fact) {
      const { line, fault: reason } = fact;
      const id = 'id' in fact ? fact.id : undefined;
      run.refused.push({ line, id, code: 'invalid', reason, retry: false });
      continue;
    }
    const id = `${fact.tenantId} ${fact.event.id}`;
    if (ids.has(id)) run.alreadyThere += 1;
    else run.valid.push(fact);
    ids.add(id);
  }
};

const refuse = (
  { refused }: Run,
  facts: readonly ValidFact[],
  { code, reason, retry = false }: Pick<RefusedFact, 'code' | 'reason'> & { readonly retry?: boolean },
): void => {
  for (const { line, event } of facts)
    refused.push({ line, id: event.id, code, reason: reasonText(reason), retry });
};

/** So many facts that they fit into an append. */
const nextBatch = (facts: readonly ValidFact[]): readonly ValidFact[] => {
  let bytes = 0;
  const end = facts.findIndex((fact) => (bytes += fact.bytes) > MAX_APPEND_BYTES);
  return facts.slice(0, end < 0 ? MAX_BATCH : Math.min(MAX_BATCH, end));
};

const byTenant = (facts: readonly ValidFact[]): ReadonlyMap<string, ValidFact[]> => {
  const tenants = new Map<string, ValidFact[]>();
  for (const fact of facts) {
    const own = tenants.get(fact.tenantId);
    if (own === undefined) tenants.set(fact.tenantId, [fact]);
    else own.push(fact);
  }
  return tenants;
};

/** Tenants whose facts together are at most a batch, or one tenant. */
const groupsOf = (facts: readonly ValidFact[]): readonly ReadonlyMap<string, ValidFact[]>[] => {
  const groups: Map<string, ValidFact[]>[] = [];
  let room = 0;
  for (const [tenantId, own] of byTenant(facts)) {
    if (own.length > room) {
      groups.push(new Map());
      room = MAX_BATCH;
    }
    groups.at(-1)?.set(tenantId, own);
    room -= own.length;
  }
  return groups;
};

const appendBatch = async (run: Run, tenantId: string, batch: readonly ValidFact[], shown: number) => {
  const stream = run.streams.activity(tenantId);
  const { accepted, position } = await run.appendOnce(
    stream,
    batch.map(({ event }) => event),
    shown,
  );
  run.accepted += accepted;
  run.alreadyThere += batch.length - accepted;
  if (run.shownBy.get(stream) === position) run.toShow.delete(tenantId);
  else if (position !== '') run.toShow.set(tenantId, position);
};

const refuseForNow = (run: Run, facts: readonly ValidFact[], error: Error): void => {
  run.troubles.push(error);
  for (const fact of facts) {
    const reason = `tenant ${fact.tenantId} cannot take facts now: send them again`;
    refuse(run, [fact], { code: 'tenant_unavailable', reason, retry: true });
  }
};

/** A trouble refuses what was not decided before it. */
const reportTenant = async (
  run: Run,
  tenantId: string,
  facts: readonly ValidFact[],
  shown: number,
): Promise<void> => {
  const { ledger, deadline, streams } = run;
  let undecided = facts;
  try {
    await run.pace();
    const status = (await ledger.exists(tenantId, deadline))
      ? await ledger.ask(tenantId, deadline, (tenant) => tenant.status)
      : 'absent';
    const refusal = tenantRefusal(status, tenantId);
    if (refusal !== undefined) return refuse(run, facts, refusal);
    await run.inTurn(streams.activity(tenantId), deadline - TIMES.answerMs, async () => {
      for (let batch = nextBatch(facts); batch.length > 0; batch = nextBatch(undecided)) {
        await run.pace();
        await appendBatch(run, tenantId, batch, shown);
        undecided = undecided.slice(batch.length);
      }
    });
  } catch (error) {
    refuseForNow(run, undecided, error as Error);
  }
};

/** Asks once for all tenants, so that little is left of a request that is sent again after it was late. */
const reportAll = async (run: Run): Promise<void> => {
  const { valid: facts, pace, readModels } = run;
  const asking = readModels.query(facts[0]?.tenantId ?? '', (reader) => shownFacts(reader, facts, pace));
  const { revisions, there } = (await inTime(run, asking)).value;
  run.alreadyThere += there.size;
  for (const group of groupsOf(facts.filter((fact) => !there.has(fact)))) {
    const reports = Array.from(group, ([tenantId, own]) =>
      reportTenant(run, tenantId, own, revisions.get(tenantId) ?? -1),
    );
    await settleAll(reports);
  }
};

/** What is wrong with a tenant, or with a store, and certainly left nothing in the log. */
const isTrouble = (error: unknown): boolean =>
  isOfTenant(error) ||
  codeOf(error) === 'log_set_back' ||
  (isAway(error) && codeOf(error) !== 'outcome_unknown');

/** Fails as a whole only if the outcome of an append is unknown, for a bug, or if a store left nothing decided. */
const mustBeTold = ({ troubles, refused, accepted, alreadyThere }: Run): void => {
  const isDecided = accepted + alreadyThere > 0 || refused.some(({ retry }) => !retry);
  const graver = troubles.find((error) => !isTrouble(error));
  const ofStore = isDecided ? undefined : troubles.find((error) => !isOfTenant(error));
  const told = graver ?? ofStore;
  if (told !== undefined) throw told;
};

const isOfTenant = (error: unknown): boolean =>
  codeOf(error) === 'tenant_unreadable' ||
  codeOf(error) === 'history_missing' ||
  moreOf(error)['isLoading'] === true;

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
  const nextSlice = fairSlices();
  const inTurn = streamQueue();
  return async (request) => {
    const { deadline, service } = request;
    const next = (): Promise<Slice> => {
      mustHaveTime(deadline);
      return nextSlice(service.id);
    };
    let slice = await next();
    const { log, shownBy } = logOf(dependencies, deadline, next);
    const run: Run = {
      ...dependencies,
      ...request,
      pace: async () => {
        if (slice.isOver()) slice = await next();
      },
      inTurn,
      appendOnce: onceAppender(log, (action) => action()),
      shownBy,
      valid: [],
      refused: [],
      toShow: new Map(),
      troubles: [],
      accepted: 0,
      alreadyThere: 0,
    };
    await checkFacts(run);
    if (run.valid.length > 0)
      await reportAll(run).catch((error: unknown) => refuseForNow(run, run.valid, error as Error));
    mustBeTold(run);
    const { accepted, alreadyThere, toShow } = run;
    return { accepted, alreadyThere, toShow, refused: run.refused.toSorted((a, b) => a.line - b.line) };
  };
};
