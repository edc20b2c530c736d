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
import { earlierRequest, rememberedRevision, type EarlierRequest } from './earlier-request';
import type { Fold, KnownTenant, UnreadableTenant } from './fold';
import type { Folds } from './folds';
import { holderOf, identifying, type Identify } from './identify';
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

/** What a command comes to, at one state of the tenant. */
type Plan =
  | { readonly kind: 'repeat'; readonly known: KnownTenant; readonly events: EarlierRequest['events'] }
  | {
      readonly kind: 'append';
      /** The decision holds at this state, and nowhere else. */
      readonly known: KnownTenant;
      readonly actor: Actor;
      readonly keyId?: string;
      readonly events: readonly TenantEvent[];
      readonly encoded: readonly NewEvent[];
    };
type AppendPlan = Extract<Plan, { kind: 'append' }>;

interface LedgerDependencies extends LedgerLog {
  readonly folds: Folds;
}

/** The events for the log, each with what it changes in the state that those before it leave. */
const encodeEvents = (
  { fold }: KnownTenant,
  { tenantId, at, traceId, client, idempotency }: Command,
  { events, actor, keyId }: Pick<AppendPlan, 'events' | 'actor' | 'keyId'>,
): readonly NewEvent[] => {
  let { tenant, revision } = fold;
  return events.map((event) => {
    const changes = changesOf(tenant, event);
    revision += 1;
    tenant = evolve(tenant, { ...event, tenantId, revision, at, actor });
    return encode(event, { actor, at, keyId, traceId, client, idempotency, changes });
  });
};

/** One step, without waiting for anything: the decision, what it changes and its revision come from the same state. */
const planFor = (known: KnownTenant, command: Command, earlier: EarlierRequest | undefined): Plan => {
  const { tenant } = known.fold;
  const { caller, permission, idempotency, at } = command;
  const planAppend = (requester: Requester, actor: Actor, keyId?: string): Plan => {
    mustMeet(command, tenant);
    const events = command.decide(tenant, { requester, at });
    const by = { events, actor, ...(keyId === undefined ? {} : { keyId }) };
    return { kind: 'append', known, ...by, encoded: encodeEvents(known, command, by) };
  };
  if (caller.kind === 'operator') return planAppend({ kind: 'operator' }, caller.actor);
  const { keyId, application } = holderOf(known, { digest: caller.digest, at }, earlier);
  if (permission !== undefined) mustHold(application, permission);
  if (earlier === undefined)
    return planAppend(
      { kind: 'application', application },
      { type: 'application', id: application.id },
      keyId,
    );
  if (earlier.hash === idempotency?.hash) return { kind: 'repeat', known, events: earlier.events };
  if (tenant.status === 'deleted') throw keyRefused('tenant_deleted');
  throw fault('idempotency_key_reused', 'This idempotency key was used with another body.');
};

/** Plans on the state at this time or later. If the same request was made meanwhile, starts over. */
const planAt = async (dependencies: LedgerDependencies, command: Command, since: number): Promise<Plan> => {
  const { tenantId, caller, idempotency: request, deadline } = command;
  for (;;) {
    const known = await dependencies.folds.asOf(tenantId, since, deadline);
    if (caller.kind === 'operator') return planFor(known, command, undefined);
    const repeatable = { tenantId, applicationId: caller.applicationId, request };
    const revision = rememberedRevision(known, repeatable);
    if (revision === undefined) return planFor(known, command, undefined);
    const earlier = await earlierRequest(dependencies, repeatable, revision);
    if (rememberedRevision(known, repeatable) === revision) return planFor(known, command, earlier);
  }
};

const append = async (
  { log, folds, streams }: LedgerDependencies,
  command: Command,
  { known, events, encoded, actor, keyId }: AppendPlan,
): Promise<Executed> => {
  const { tenantId, deadline, at, traceId, idempotency } = command;
  const { revision } = known.fold;
  const left = deadline - ANSWER_MS - monotonicMs();
  if (left <= 0) throw logFault('log_unavailable', 'No time was left to write.');
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

/** Refused by a decision or the ledger. */
const isRefused = (error: unknown): boolean => isRefusal(error) || REFUSED.has(codeOf(error));

/**
 * Plans on the cached state and appends. What was refused or repeated there is planned again on the state when the command
 * arrived, so that those that wait share a read; if the stream has changed meanwhile, on its newest state.
 */
const decideAndAppend = async (
  dependencies: LedgerDependencies,
  command: Command,
  arrivedAt: number,
): Promise<Executed> => {
  for (let since = -Infinity; ;) {
    const isCached = since === -Infinity;
    try {
      const plan = await planAt(dependencies, command, since);
      if (plan.kind === 'append') return await append(dependencies, command, plan);
      if (!isCached) return repeat(plan.known.fold, plan.events);
      since = arrivedAt;
    } catch (error) {
      if (codeOf(error) === 'stream_changed') since = threadMs();
      else if (isCached && isRefused(error)) since = arrivedAt;
      else throw error;
    }
  }
};

export const ledger = (dependencies: LedgerDependencies): Ledger => {
  const { folds, streams } = dependencies;
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
    identify: identifying(dependencies, folds),
    execute: (command) => {
      const arrivedAt = threadMs();
      return exclusive(command, () =>
        inTurn(streams.tenant(command.tenantId), command.deadline - ANSWER_MS, () =>
          decideAndAppend(dependencies, command, arrivedAt),
        ),
      );
    },
    stateOf: async (tenantId, deadline) => (await folds.asOf(tenantId, threadMs(), deadline)).fold.tenant,
    unreadable: () => folds.unreadable(),
  };
};
