import { monotonicMs } from '../clock';
import { keyRefused, mustHold, type Caller } from '../domain/authority';
import type { Actor, Idempotency, TenantEvent } from '../domain/events';
import { isRefusal, refusal } from '../domain/refusal';
import { mustBeActive, type ActiveTenant, type Decide, type Tenant } from '../domain/tenant';
import { evolve } from '../domain/tenant-folding';
import { encode } from '../event-log/codec';
import {
  logFault,
  type EventLog,
  type LoggedEvent,
  type NewEvent,
  type Position,
} from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { codeOf, fault, type Fault } from '../fault';
import { tenantEventOf, type Fold } from './fold';
import { untilUnchanged, type Folds, type KnownTenant } from './folds';
import { holderOf, identifying, type Identifying, type KeyCheck } from './identify';
import { replyKey, type Reply } from './replies';
import { streamQueue } from './stream-queue';

/** A request to change one tenant. */
export interface Command {
  readonly tenantId: string;
  readonly caller: Caller;
  /** What a caller with a key must hold. The operator may do everything. */
  readonly permission?: string;
  readonly decide: Decide;
  /** `If-Match`: given the tenant, is it still what the caller saw? */
  readonly precondition?: (tenant: ActiveTenant) => boolean;
  readonly idempotency?: Idempotency;
  readonly at: string;
  readonly traceId?: string;
  /** On the monotonic clock. */
  readonly deadline: number;
}

export interface Executed {
  /** As it was right after the command's own event. */
  readonly tenant: Tenant;
  /** Where a read model must be to show it. */
  readonly position: Position;
}

/** Writes: loads, decides, appends. It needs no read model, and no refusal of it rests on an old state. */
export interface Ledger extends Identifying {
  /** Key, expiry and permission are checked here, at the revision that is appended at, whatever `identify` said. */
  execute(command: Command): Promise<Executed>;
  /** Asks a tenant's own stream. A question that refuses is asked again of the stream's head first. */
  ask<T>(tenantId: string, question: (tenant: Tenant) => T, deadline: number): Promise<T>;
  /** The same, asked of the stream's head only: what others have written since counts. */
  askAtHead<T>(tenantId: string, question: (tenant: Tenant) => T, deadline: number): Promise<T>;
  unreadable(): readonly Fault[];
}

/** So much of the time is kept back for the answer itself. */
const ANSWER_MS = 50;

/** The reply to the same request before. It may be later than the fold that is known. */
const earlierReply = (
  { replies }: KnownTenant,
  applicationId: string,
  idempotency: Idempotency | undefined,
): Reply | undefined =>
  idempotency === undefined ? undefined : replies.find(replyKey(applicationId, idempotency));

const mustMeet = (command: Command, now: Tenant): void => {
  if (command.precondition === undefined) return;
  const tenant = mustBeActive(now);
  if (command.precondition(tenant)) return;
  throw refusal('precondition_failed', 'The Tenant has changed since: If-Match does not match.', {
    revision: tenant.changedAt,
  });
};

type Plan =
  | { readonly kind: 'repeat'; readonly reply: Reply }
  | {
      readonly kind: 'append';
      readonly actor: Actor;
      readonly keyId?: string;
      readonly events: readonly TenantEvent[];
    };

const decided = (command: Command, tenant: Tenant): readonly TenantEvent[] => {
  mustMeet(command, tenant);
  return command.decide(tenant);
};

const planned = (known: KnownTenant, command: Command): Plan => {
  const { tenant } = known.fold;
  const { caller, permission, idempotency } = command;
  if (caller.kind === 'operator')
    return { kind: 'append', actor: caller.actor, events: decided(command, tenant) };
  const reply = earlierReply(known, caller.applicationId, idempotency);
  const { keyId, application } = holderOf(known, caller, reply);
  if (permission !== undefined) mustHold(application, permission);
  if (reply === undefined) {
    const actor = { type: 'application' as const, id: application.id };
    return { kind: 'append', actor, keyId, events: decided(command, tenant) };
  }
  if (reply.hash === idempotency?.hash) return { kind: 'repeat', reply };
  if (tenant.status === 'deleted') throw keyRefused('tenant_deleted');
  throw refusal('idempotency_key_reused', 'This idempotency key was used with another body.');
};

const newEvents = (plan: Plan & { kind: 'append' }, command: Command): readonly NewEvent[] => {
  const { at, traceId, idempotency } = command;
  const { actor, keyId } = plan;
  return plan.events.map((event) => encode(event, { actor, at, keyId, traceId, idempotency }));
};

export interface LedgerParts {
  readonly log: EventLog;
  readonly folds: Folds;
  readonly streams: Streams;
  readonly keys: KeyCheck;
}

export const ledger = ({ log, folds, streams, keys }: LedgerParts): Ledger => {
  const inTurn = streamQueue();
  const inFlight = new Set<string>();

  const append = async (
    command: Command,
    known: KnownTenant,
    events: readonly NewEvent[],
  ): Promise<Executed> => {
    const { fold } = known;
    const stream = streams.tenant(command.tenantId);
    const left = command.deadline - ANSWER_MS - monotonicMs();
    if (left <= 0) throw logFault('log_unavailable', 'There was no time left to write.');
    const expected = fold.revision < 0 ? 'no_stream' : fold.revision;
    const { position } = await log.append(stream, events, expected, left).catch(async (error: unknown) => {
      if (codeOf(error) === 'history_missing') await folds.atHead(command.tenantId, command.deadline); // keeps the reason
      throw error;
    });
    const logged = events.map((event, i): LoggedEvent => ({
      ...event,
      stream,
      revision: fold.revision + 1 + i,
      position,
      recordedAt: command.at,
    }));
    return { tenant: folds.advance(command.tenantId, known, logged).tenant, position };
  };

  /** The answer of long ago, made from its own event again. */
  const repeat = async ({ tenantId }: Command, fold: Fold, reply: Reply): Promise<Executed> => {
    for await (const [logged] of log.readStream(streams.tenant(tenantId), reply.revision - 1)) {
      if (logged === undefined) break;
      const event = tenantEventOf(logged, reply.revision - 1, tenantId, streams);
      const tenant = fold.tenant.status === 'active' ? evolve(fold.tenant, event) : fold.tenant;
      return { tenant, position: logged.position };
    }
    throw logFault('log_unavailable', `Revision ${reply.revision} of tenant ${tenantId} is not to be had.`);
  };

  /** Decides on what is known; a refusal or a repetition only counts at the head of the stream. */
  const planAtHead = async (
    command: Command,
    fresh: boolean,
  ): Promise<{ plan: Plan; known: KnownTenant }> => {
    const known = await (fresh
      ? folds.atHead(command.tenantId, command.deadline)
      : folds.known(command.tenantId, command.deadline));
    try {
      const plan = planned(known, command);
      return fresh || plan.kind === 'append' ? { plan, known } : await planAtHead(command, true);
    } catch (error) {
      if (fresh || !isRefusal(error)) throw error;
      return planAtHead(command, true);
    }
  };

  const tryOnce = async (command: Command, fresh: boolean): Promise<Executed> => {
    const { plan, known } = await planAtHead(command, fresh);
    if (plan.kind === 'repeat') return repeat(command, known.fold, plan.reply);
    return append(command, known, newEvents(plan, command));
  };

  const alone = async (command: Command, work: () => Promise<Executed>): Promise<Executed> => {
    const { caller, idempotency, tenantId } = command;
    if (idempotency === undefined || caller.kind === 'operator') return work();
    const key = `${tenantId} ${replyKey(caller.applicationId, idempotency)}`;
    if (inFlight.has(key))
      throw fault('idempotency_in_progress', 'A request with this idempotency key is still in progress.');
    inFlight.add(key);
    return work().finally(() => inFlight.delete(key));
  };

  const askAtHead: Ledger['askAtHead'] = async (tenantId, question, deadline) =>
    question((await folds.atHead(tenantId, deadline)).fold.tenant);

  return {
    ...identifying(folds, keys),
    execute: (command) =>
      alone(command, () =>
        inTurn(streams.tenant(command.tenantId), command.deadline - ANSWER_MS, () =>
          untilUnchanged((fresh) => tryOnce(command, fresh)),
        ),
      ),
    ask: async (tenantId, question, deadline) => {
      try {
        return question((await folds.known(tenantId, deadline)).fold.tenant);
      } catch (error) {
        if (!isRefusal(error)) throw error;
        return askAtHead(tenantId, question, deadline);
      }
    },
    askAtHead,
    unreadable: () => folds.unreadable(),
  };
};
