import { logKey } from '../../projections/logs';
import { settleAll } from '../async/concurrency';
import type { Tenant } from '../domain/tenant';
import { MAX_APPEND_BYTES, type NewEvent } from '../event-log/event-log';
import type { BoundedCache } from '../ledger/folds';
import type { ReadModelSet } from '../read-models/read-models';
import { reasonText, type CheckedFact } from './fact-line';

/** How reported facts get into the log, from a file or from a service. */

export type ValidFact = Exclude<CheckedFact, { fault: string }>;

export const factRefusals = ['invalid', 'unknown_tenant', 'deleted_tenant', 'tenant_unavailable'] as const;

/** Named as in the response to a service. */
export interface RefusedFact {
  readonly line: number;
  readonly id?: string | undefined;
  readonly code: (typeof factRefusals)[number];
  readonly reason: string;
  readonly retry: boolean;
}

/** What became of facts so far. */
export interface Tally {
  accepted: number;
  /** Their ids were in the log before, or earlier in the input. */
  alreadyThere: number;
  refused: RefusedFact[];
}

/** They are found in several passes. */
export const inOrder = (refused: readonly RefusedFact[]): RefusedFact[] =>
  refused.toSorted((a, b) => a.line - b.line);

export const refuse = (
  { refused }: Tally,
  facts: readonly ValidFact[],
  code: RefusedFact['code'],
  why: (tenantId: string) => string,
  retry = false,
): void => {
  for (const { line, event, tenantId } of facts)
    refused.push({ line, id: event.id, code, reason: reasonText(why(tenantId)), retry });
};

/** The fact, if it is valid and its id is not among the newest of the input. */
export const newFact = (fact: CheckedFact, tally: Tally, seen: BoundedCache<true>): readonly ValidFact[] => {
  if ('fault' in fact) {
    const { line, id, fault: reason } = fact;
    tally.refused.push({ line, id, code: 'invalid', reason, retry: false });
    return [];
  }
  const id = `${fact.tenantId} ${fact.event.id}`;
  const isKnown = seen.get(id) === true;
  seen.put(id, true);
  if (isKnown) tally.alreadyThere += 1;
  return isKnown ? [] : [fact];
};

export type RowReader = Pick<ReadModelSet, 'load' | 'progress'>;

export interface Recorder {
  readonly maxBatch: number;
  /** `tenantId` is one of them. */
  lookUp<T>(tenantId: string, query: (reader: RowReader) => Promise<T>): Promise<T>;
  statusOf(tenantId: string): Promise<Tenant['status']>;
  /** Appends what the stream does not have after this revision, and returns how many those are. */
  append(tenantId: string, events: readonly NewEvent[], shown: number): Promise<number>;
  /** Called before each piece of work. */
  pace(): Promise<unknown>;
  /** Takes the facts of a tenant that could not be decided, or throws. */
  fail(facts: readonly ValidFact[], error: Error): void;
}

/** The facts of a tenant that the read models did not show when they showed its stream up to a revision, or -1. */
interface UnshownFacts {
  readonly tenantId: string;
  readonly facts: ValidFact[];
  readonly shown: number;
}

/** So many are looked up at a time. */
const LOOKUPS = 100;

/** Reads the revisions first, so that the look-ups see at least the events up to them. */
const findUnshown = async (reader: RowReader, facts: readonly ValidFact[], { pace }: Recorder) => {
  const tenantIds = [...new Set(facts.map(({ tenantId }) => tenantId))];
  const progress = await reader.progress(tenantIds);
  const unshown = new Map<string, UnshownFacts>(
    tenantIds.map((tenantId, i) => [tenantId, { tenantId, facts: [], shown: progress[i]?.activity ?? -1 }]),
  );
  for (let from = 0; from < facts.length; from += LOOKUPS) {
    await pace();
    const some = facts.slice(from, from + LOOKUPS);
    const rows = await reader.load(some.map(({ tenantId, event }) => logKey(tenantId, event.id)));
    for (const [i, fact] of some.entries())
      if (rows[i] === undefined) unshown.get(fact.tenantId)?.facts.push(fact);
  }
  return [...unshown.values()].filter((own) => own.facts.length > 0);
};

/** So many facts that they fit into an append. */
const nextBatch = (facts: readonly ValidFact[], max: number): readonly ValidFact[] => {
  let bytes = 0;
  const end = facts.findIndex((fact) => (bytes += fact.bytes) > MAX_APPEND_BYTES);
  return facts.slice(0, end < 0 ? max : Math.min(max, end));
};

/** Tenants whose facts together are at most a batch, or one tenant. */
const groupsOf = (tenants: readonly UnshownFacts[], max: number): readonly UnshownFacts[][] => {
  const groups: UnshownFacts[][] = [];
  let room = 0;
  for (const own of tenants) {
    if (own.facts.length > room) {
      groups.push([]);
      room = max;
    }
    groups.at(-1)?.push(own);
    room -= own.facts.length;
  }
  return groups;
};

const recordTenant = async (recorder: Recorder, own: UnshownFacts, tally: Tally): Promise<void> => {
  const { tenantId, shown } = own;
  let left: readonly ValidFact[] = own.facts;
  try {
    await recorder.pace();
    const status = await recorder.statusOf(tenantId);
    if (status === 'absent') return refuse(tally, left, 'unknown_tenant', (id) => `tenant ${id} is unknown`);
    if (status === 'deleted') return refuse(tally, left, 'deleted_tenant', (id) => `tenant ${id} is deleted`);
    while (left.length > 0) {
      await recorder.pace();
      const batch = nextBatch(left, recorder.maxBatch);
      const accepted = await recorder.append(
        tenantId,
        batch.map(({ event }) => event),
        shown,
      );
      tally.accepted += accepted;
      tally.alreadyThere += batch.length - accepted;
      left = left.slice(batch.length);
    }
  } catch (error) {
    recorder.fail(left, error as Error);
  }
};

/** Asks once for all tenants. Appends to those of a group at once, so that the log can commit that together. */
export const recordFacts = async (recorder: Recorder, facts: readonly ValidFact[], tally: Tally) => {
  const [first] = facts;
  if (first === undefined) return;
  const unshown = await recorder.lookUp(first.tenantId, (reader) => findUnshown(reader, facts, recorder));
  tally.alreadyThere += facts.length - unshown.reduce((sum, own) => sum + own.facts.length, 0);
  for (const group of groupsOf(unshown, recorder.maxBatch))
    await settleAll(group.map((own) => recordTenant(recorder, own, tally)));
};
