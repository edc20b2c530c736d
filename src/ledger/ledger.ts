import { monotonicMs, threadMs } from '../async/clock';
import { keyRefused, mustHold } from '../domain/authority';
import { changesOf } from '../domain/changes';
import type { Actor, Caused, Recorded, TenantEvent } from '../domain/events';
import { isRefusal } from '../domain/refusal';
import { mustBeActive, type ActiveTenant, type Requester, type Decide, type Tenant } from '../domain/tenant';
import { evolve } from '../domain/tenant-folding';
import { encode } from '../event-log/codec';
import { logFault, type NewEvent, type Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import { codeOf, fault, type FaultCode } from '../fault';
import { earlierRequest, type EarlierRequest } from './earlier-request';
import type { Fold, UnreadableTenant } from './fold';
import type { Folds, KnownTenant } from './folds';
import { holderOf, identifying, type Identify, type KeyRecords } from './identify';
import { requestKey } from './remembered-requests';
import type { Request } from './request';
import { streamQueue } from './stream-queue';

/** What the entity tags in `If-Match` belong to. */
export interface Resource {
  readonly of: 'Tenant' | 'Application';
  /** Its current entity tag. */
  readonly tag: (tenant: ActiveTenant) => string;
}

/** A request to change one tenant. */
export interface Command extends Request {
  readonly decide: Decide;
  /** Omitted: the request is unconditional. */
  readonly resource?: Resource;
}

const causedBy = ({ type, data, actor, at, revision }: Recorded<TenantEvent>): Caused =>
  ({ type, data, actor, at, revision }) as Caused;

export interface Executed {
  /**
   * The state right after the command's own events. For a repeated request: the current state with its updates applied.
   */
  readonly tenant: Tenant;
  /** The events that the command caused, now or when it was first sent. */
  readonly events: readonly Caused[];
  /** A read model that has reached this position shows the change. */
  readonly position: Position;
  /** The request was made before, with the same idempotency key. */
  readonly isRepeat?: true;
}

/** The write side: loads, decides, appends. Needs no read model, and never refuses because of stale state. */
export interface Ledger {
  readonly identify: Identify;
  /** Checks key, expiry and permission again, at the very revision of the append, whatever `identify` said. */
  execute(command: Command): Promise<Executed>;
  /** The tenant at the head of its stream. */
  stateOf(tenantId: string, deadline: number): Promise<Tenant>;
  /** The tenants whose streams could not be read at the last attempt, with the reason. */
  unreadable(): readonly UnreadableTenant[];
}

/** Reserved for sending the response before the deadline. */
export const ANSWER_MS = 50;

const mustMeet = ({ resource, isMet }: Command, now: Tenant): void => {
  if (resource === undefined || isMet === undefined) return;
  const tag = resource.tag(mustBeActive(now));
  if (isMet(tag)) return;
  throw fault('precondition_failed', `The ${resource.of} has changed: If-Match does not match.`, { tag });
};

type Plan =
  | { readonly kind: 'repeat'; readonly events: EarlierRequest['events'] }
  | {
      readonly kind: 'append';
      readonly actor: Actor;
      readonly keyId?: string;
      readonly events: readonly TenantEvent[];
    };

const planFor = async (
  dependencies: LedgerDependencies,
  known: KnownTenant,
  command: Command,
): Promise<Plan> => {
  const { tenant } = known.fold;
  const { tenantId, caller, permission, idempotency, at } = command;
  const decide = (requester: Requester): readonly TenantEvent[] => {
    mustMeet(command, tenant);
    return command.decide(tenant, { requester, at });
  };
  if (caller.kind === 'operator')
    return { kind: 'append', actor: caller.actor, events: decide({ kind: 'operator' }) };
  const { applicationId } = caller;
  const earlier = await earlierRequest(dependencies, known, {
    tenantId,
    applicationId,
    request: idempotency,
  });
  const { keyId, application } = holderOf(known, { digest: caller.digest, at }, earlier);
  if (permission !== undefined) mustHold(application, permission);
  if (earlier === undefined) {
    const actor = { type: 'application' as const, id: application.id };
    return { kind: 'append', actor, keyId, events: decide({ kind: 'application', application }) };
  }
  if (earlier.hash === idempotency?.hash) return { kind: 'repeat', events: earlier.events };
  if (tenant.status === 'deleted') throw keyRefused('tenant_deleted');
  throw fault('idempotency_key_reused', 'This idempotency key was used with another body.');
};

interface LedgerDependencies extends LedgerLog {
  readonly folds: Folds;
  readonly keys: KeyRecords;
}

/** The events for the log, each with what it changes in the state that those before it leave. */
const encodeEvents = (
  { fold }: KnownTenant,
  { tenantId, at, traceId, client, idempotency }: Command,
  { events, actor, keyId }: Plan & { kind: 'append' },
): readonly NewEvent[] => {
  let { tenant, revision } = fold;
  return events.map((event) => {
    const changes = changesOf(tenant, event);
    revision += 1;
    tenant = evolve(tenant, { ...event, tenantId, revision, at, actor });
    return encode(event, { actor, at, keyId, traceId, client, idempotency, changes });
  });
};

const append = async (
  { log, folds, streams }: LedgerDependencies,
  command: Command,
  known: KnownTenant,
  plan: Plan & { kind: 'append' },
): Promise<Executed> => {
  const { tenantId, deadline, at, traceId, idempotency } = command;
  const { events, actor, keyId } = plan;
  const { revision } = known.fold;
  const left = deadline - ANSWER_MS - monotonicMs();
  if (left <= 0) throw logFault('log_unavailable', 'No time was left to write.');
  const encoded = encodeEvents(known, command, plan);
  const expected = revision < 0 ? 'no_stream' : revision;
  const began = threadMs();
  const appending = log.append(streams.tenant(tenantId), encoded, expected, left);
  const { position } = await appending.catch(async (error: unknown) => {
    if (codeOf(error) === 'history_missing') await folds.asOf(tenantId, threadMs(), deadline); // keeps the reason
    throw error;
  });
  const circumstances = { tenantId, position, at, recordedAt: at, actor, keyId, traceId, idempotency };
  const recorded = events.map(
    (event, i): Recorded<TenantEvent> =>
      ({
        ...event,
        ...circumstances,
        id: encoded[i]?.id,
        revision: revision + 1 + i,
      }) as Recorded<TenantEvent>,
  );
  const { tenant } = folds.advance(tenantId, known, recorded, began);
  return { tenant, events: recorded.map(causedBy), position };
};

/** Makes the original response again from its events. */
const repeat = ({ tenant }: Fold, events: readonly Recorded<TenantEvent>[]): Executed => {
  const asRepeated = events.reduce(
    (now, event) => (now.status === 'active' && event.type === 'TenantUpdated' ? evolve(now, event) : now),
    tenant,
  );
  const position = events.at(-1)?.position ?? '';
  return { tenant: asRepeated, events: events.map(causedBy), position, isRepeat: true };
};

const REFUSED: ReadonlySet<string | undefined> = new Set<FaultCode>([
  'precondition_failed',
  'idempotency_key_reused',
]);

/** Refused by a decision or the ledger. `execute` refuses only at the head of the stream. */
export const isRefused = (error: unknown): boolean => isRefusal(error) || REFUSED.has(codeOf(error));

/** Plans on the cached state. What was refused or repeated there is planned again on the state at `since` or later. */
const makePlan = async (
  dependencies: LedgerDependencies,
  command: Command,
  isFresh: boolean,
  since: number,
): Promise<{ readonly plan: Plan; readonly known: KnownTenant }> => {
  const planAt = async (time: number) => {
    const known = await dependencies.folds.asOf(command.tenantId, time, command.deadline);
    return { known, plan: await planFor(dependencies, known, command) };
  };
  if (isFresh) return planAt(threadMs());
  try {
    const planned = await planAt(-Infinity);
    if (planned.plan.kind === 'append') return planned;
  } catch (error) {
    if (!isRefused(error)) throw error;
  }
  return planAt(since);
};

/**
 * Plans and appends, again from the head of the stream for as long as the stream changes in between. A refusal takes
 * account of everything written before the command arrived, at `since`, so those that wait share a read.
 */
const decideAndAppend = async (
  dependencies: LedgerDependencies,
  command: Command,
  since: number,
): Promise<Executed> => {
  for (let isFresh = false; ; isFresh = true) {
    const { plan, known } = await makePlan(dependencies, command, isFresh, since);
    if (plan.kind === 'repeat') return repeat(known.fold, plan.events);
    try {
      return await append(dependencies, command, known, plan);
    } catch (error) {
      const mayBeStale = codeOf(error) === 'stream_changed' || (!isFresh && isRefused(error));
      if (!mayBeStale) throw error;
    }
  }
};

export const ledger = (dependencies: LedgerDependencies): Ledger => {
  const { folds, streams, keys } = dependencies;
  const inTurn = streamQueue();
  const inProgress = new Set<string>();

  const exclusive = async (command: Command, work: () => Promise<Executed>): Promise<Executed> => {
    const { caller, idempotency, tenantId } = command;
    if (idempotency === undefined || caller.kind === 'operator') return work();
    const key = `${tenantId} ${requestKey(caller.applicationId, idempotency)}`;
    if (inProgress.has(key))
      throw fault('idempotency_in_progress', 'A request with this idempotency key is still in progress.');
    inProgress.add(key);
    return work().finally(() => inProgress.delete(key));
  };

  return {
    identify: identifying(dependencies, folds, keys),
    execute: (command) => {
      const since = threadMs();
      return exclusive(command, () =>
        inTurn(streams.tenant(command.tenantId), command.deadline - ANSWER_MS, () =>
          decideAndAppend(dependencies, command, since),
        ),
      );
    },
    stateOf: async (tenantId, deadline) => (await folds.asOf(tenantId, threadMs(), deadline)).fold.tenant,
    unreadable: () => folds.unreadable(),
  };
};
