import { beforeDeadline, monotonicMs, threadMs } from '../async/clock';
import { whileUsed } from '../async/concurrency';
import { changesOf } from '../domain/audit-wording';
import { keyRefused, mustHold, type Caller } from '../domain/authority';
import type { Actor, Caused, Client, Idempotency } from '../domain/events';
import { isRefusal } from '../domain/refusal';
import {
  copyFor,
  evolve,
  mustBeActive,
  type ActiveTenant,
  type Decide,
  type Requester,
  type Tenant,
} from '../domain/tenant';
import { encode } from '../event-log/codec';
import type { NewEvent, Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/streams';
import { codeOf, fault } from '../fault';
import { TIMES } from '../times';
import { tenantExistence } from './absent-tenants';
import { holderOf, identifying, type Identify } from './api-key';
import { earlierRequest, requestKey, type EarlierRequest, type UnreadableTenant } from './fold';
import type { Folds, KnownTenant } from './folds';

/** A request about one tenant. HTTP and the command line build the same. */
export interface TenantRequest {
  readonly tenantId: string;
  readonly caller: Caller;
  /** ISO 8601. Its events carry this time, and its key must not have expired by then. */
  readonly at: string;
  /** When the response is due, on the monotonic clock. */
  readonly deadline: number;
  /** Required of callers with a key. The operator may do everything. */
  readonly permission?: string | undefined;
  readonly idempotency?: Idempotency | undefined;
  /** `If-Match`: whether a resource with this entity tag is as the caller saw it. */
  readonly isMet?: ((tag: string) => boolean) | undefined;
  readonly traceId?: string;
  /** Undefined: it is not recorded. */
  readonly client?: Client | undefined;
}

/** What the entity tags in `If-Match` belong to. */
export interface Resource {
  readonly of: 'Tenant' | 'Application';
  /** Its current entity tag. */
  readonly tag: (tenant: ActiveTenant) => string;
}

/** A request to change one tenant. */
export interface Command extends TenantRequest {
  readonly decide: Decide;
  /** Omitted: the request is unconditional. */
  readonly resource?: Resource;
}

export interface Executed {
  /**
   * A copy of the state right after the command's own events; for a repeated request, of the current state with its
   * updates applied. Of the Applications and keys it has only what these events are about.
   */
  readonly tenant: Tenant;
  /** The events that the command caused, now or when it was first sent. */
  readonly events: readonly Caused[];
  /** Read models show the change once they show the tenant up to here. */
  readonly position: Position;
  /** They do: they were projected with the append. */
  readonly isShown?: true;
  /** The request was made before, with the same idempotency key. */
  readonly isRepeat?: true;
}

/** The write side: loads, decides, appends. Needs no read model, and never refuses because of stale state. */
export interface Ledger {
  readonly identify: Identify;
  /** Checks key, expiry and permission again, at the very revision of the append, whatever `identify` said. */
  execute(command: Command): Promise<Executed>;
  /** Answers a question about the tenant at the head of its stream. The tenant itself never leaves the ledger. */
  ask<T>(tenantId: string, deadline: number, answer: (tenant: Tenant) => T): Promise<T>;
  /** Whether there is such a tenant, deleted or not, as it was at most 500 ms ago. */
  exists(tenantId: string, deadline: number): Promise<boolean>;
  /** The time, ISO 8601, that answers about a tenant in memory are as of. */
  asOf(tenantId: string): string;
  /** The tenants whose streams could not be read at the last attempt, with the reason. */
  unreadable(): readonly UnreadableTenant[];
}

const mustMeet = ({ resource, isMet }: Command, now: Tenant): void => {
  if (resource === undefined || isMet === undefined) return;
  const tag = resource.tag(mustBeActive(now));
  if (isMet(tag)) return;
  throw fault('precondition_failed', `The ${resource.of} is not as If-Match or If-None-Match says.`, { tag });
};

/** What a command comes to, at one state of the tenant. */
type Plan =
  | { readonly kind: 'repeat'; readonly response: Executed }
  | {
      readonly kind: 'append';
      readonly known: KnownTenant;
      /** The decision holds at this revision, and nowhere else. */
      readonly revision: number;
      readonly encoded: readonly NewEvent[];
      readonly events: readonly Caused[];
      readonly tenant: Tenant;
    };
type AppendPlan = Extract<Plan, { kind: 'append' }>;

interface LedgerDependencies extends LedgerLog {
  readonly folds: Folds;
}

/** Who asks for a change. */
interface Asker {
  readonly requester: Requester;
  readonly actor: Actor;
  readonly keyId?: string;
}

const planAppend = (known: KnownTenant, command: Command, { requester, actor, keyId }: Asker): Plan => {
  const { tenant, revision } = known;
  const { tenantId, at, traceId, client, idempotency } = command;
  mustMeet(command, tenant);
  const decided = command.decide(tenant, { requester, at });
  let after = copyFor(decided, tenant);
  const events: Caused[] = [];
  const encoded = decided.map(({ type, data }, i) => {
    const event = { type, data, tenantId, revision: revision + 1 + i, at, actor, idempotency } as Caused;
    const changes = changesOf(after, event);
    after = evolve(after, event);
    events.push(event);
    return encode(event, { actor, at, keyId, traceId, client, idempotency, changes });
  });
  return { kind: 'append', known, revision, encoded, events, tenant: after };
};

/** Makes the original response again from its events. */
const planRepeat = (now: Tenant, events: EarlierRequest['events']): Plan => {
  const isShown = (before: Tenant, { type, data }: Caused): boolean =>
    before.status === 'active' &&
    (type === 'TenantUpdated' ||
      (type === 'ApplicationUpdated' && before.applications.has(data.applicationId)));
  let tenant = copyFor(events, now);
  for (const event of events) if (isShown(tenant, event)) tenant = evolve(tenant, event);
  const position = events.at(-1)?.position ?? '';
  return { kind: 'repeat', response: { tenant, events, position, isRepeat: true } };
};

/** One step, without waiting for anything: the decision, what it changes and its revision come from the same state. */
const planFor = (known: KnownTenant, command: Command, earlier: EarlierRequest | undefined): Plan => {
  const { caller, permission, idempotency, at } = command;
  if (caller.kind === 'operator')
    return planAppend(known, command, { requester: { kind: 'operator' }, actor: caller.actor });
  const { keyId, application } = holderOf(known, { digest: caller.digest, at }, earlier);
  if (permission !== undefined) mustHold(application, permission);
  if (earlier === undefined) {
    const actor = { type: 'application', id: application.id, name: application.name } as const;
    return planAppend(known, command, { requester: { kind: 'application', application }, actor, keyId });
  }
  if (earlier.hash === idempotency?.hash) return planRepeat(known.tenant, earlier.events);
  if (known.tenant.status === 'deleted') throw keyRefused('tenant_deleted');
  throw fault('idempotency_key_reused', 'This idempotency key was used with another body.');
};

/** Plans on the state at this time or later. If the same request was made meanwhile, starts over. */
const planAt = async (dependencies: LedgerDependencies, command: Command, since: number): Promise<Plan> => {
  const { tenantId, caller, idempotency: request, deadline } = command;
  for (;;) {
    const known = await dependencies.folds.asOf(tenantId, since, deadline);
    if (caller.kind === 'operator') return planFor(known, command, undefined);
    const { applicationId } = caller;
    const revision = known.requests.find(applicationId, request);
    if (revision === undefined) return planFor(known, command, undefined);
    const earlier = await earlierRequest(dependencies, { tenantId, applicationId, request }, revision);
    if (known.requests.find(applicationId, request) === revision) return planFor(known, command, earlier);
  }
};

const append = async (
  { log, folds, streams }: LedgerDependencies,
  { tenantId, deadline }: Command,
  { known, revision, encoded, events, tenant }: AppendPlan,
): Promise<Executed> => {
  const left = deadline - TIMES.answerMs - monotonicMs();
  if (left <= 0) throw fault('log_unavailable', 'No time was left to write.');
  const expected = revision < 0 ? 'no_stream' : revision;
  const began = threadMs();
  const appending = log.append(streams.tenant(tenantId), encoded, expected, left);
  const { position, isShown } = await appending.catch(async (error: unknown) => {
    if (codeOf(error) === 'history_missing') await folds.asOf(tenantId, threadMs(), deadline); // keeps the reason
    throw error;
  });
  folds.advance(tenantId, known, events, began);
  return { tenant, events, position, ...(isShown && { isShown }) };
};

const REFUSED = new Set<string | undefined>(['precondition_failed', 'idempotency_key_reused']);

/** Refused by a decision or the ledger. */
const isRefused = (error: unknown): boolean => isRefusal(error) || REFUSED.has(codeOf(error));

/**
 * Plans on the cached state and appends. What was refused or repeated there is planned again on the state when the command
 * arrived, so that those that wait share a read; if the stream has changed meanwhile, on its newest state.
 */
const decideAndAppend = async (dependencies: LedgerDependencies, command: Command, arrivedAt: number) => {
  for (let since = -Infinity; ;) {
    const isCached = since === -Infinity;
    try {
      const plan = await planAt(dependencies, command, since);
      if (plan.kind === 'append') return await append(dependencies, command, plan);
      if (!isCached) return plan.response;
      since = arrivedAt;
    } catch (error) {
      if (codeOf(error) === 'stream_changed') since = threadMs();
      else if (isCached && isRefused(error)) since = arrivedAt;
      else throw error;
    }
  }
};

const tooMany = () => fault('log_unavailable', 'Too many writes are queued for this tenant.');

/** Serializes the writes of this process to each stream, in order of arrival; each waits only until its deadline. */
export const streamQueue = () => {
  const queues = whileUsed((): { tail?: Promise<unknown> } => ({}));
  return <T>(stream: string, deadline: number, work: () => Promise<T>): Promise<T> =>
    queues(stream, async (queue) => {
      const before = queue.tail;
      let done = (): void => undefined;
      // It waits for all before it too: this one may time out while an earlier write is still running.
      queue.tail = Promise.all([before, new Promise<void>((resolve) => (done = resolve))]);
      try {
        if (before !== undefined) await beforeDeadline(before, deadline, tooMany);
        return await work();
      } finally {
        done();
      }
    });
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
        inTurn(streams.tenant(command.tenantId), command.deadline - TIMES.answerMs, () =>
          decideAndAppend(dependencies, command, arrivedAt),
        ),
      );
    },
    ask: async (tenantId, deadline, answer) =>
      answer((await folds.asOf(tenantId, threadMs(), deadline)).tenant),
    exists: tenantExistence(dependencies, folds),
    asOf: (tenantId) => {
      const now = threadMs();
      return new Date(Date.now() - Math.ceil(now - (folds.lookedAt(tenantId) ?? now))).toISOString();
    },
    unreadable: () => folds.unreadable(),
  };
};
