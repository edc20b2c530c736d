import { beforeDeadline, isoNow, monotonicMs, threadMs } from '../async/clock';
import { singleFlight } from '../async/concurrency';
import { keyRefused } from '../domain/authority';
import { isAboutServices, type Actor, type ServiceEvent } from '../domain/events';
import * as domain from '../domain/services';
import { encode, operatorEventOf } from '../event-log/codec';
import type { LoggedEvent } from '../event-log/event-log';
import { gapBefore, type LedgerLog } from '../event-log/streams';
import { codeOf, fault, messageOf } from '../fault';
import { TIMES } from '../times';
import type { PresentedKey } from './api-key';
import { orKnown, type Looked } from './folds';

type PresentedServiceKey = Pick<PresentedKey, 'digest' | 'at' | 'deadline'>;

/** The services of the operator, folded from the stream `operator`. */
export interface KnownServices {
  /** All of them as of this call. `services_unreadable` if an event about them cannot be read. */
  all(deadline: number): Promise<domain.Services>;
  /** As it was at most 500 ms ago, or `key_refused` as of this call. Reads go on while the log does not answer. */
  identify(key: PresentedServiceKey, isRead: boolean): Promise<domain.ServiceIdentity>;
  /** The same for the limits: undefined instead of a refusal or a fault, and never a look for this key alone. */
  find(key: PresentedServiceKey): Promise<domain.ServiceIdentity | undefined>;
  execute(decide: domain.DecideServices, actor: Actor): Promise<void>;
}

const unreadable = (reason: string) =>
  fault('services_unreadable', `The services of the operator cannot be read. ${reason}`);

const late = () => fault('log_unavailable', 'The services of the operator are still being read.');

/** While the log does not answer, a request waits this long for it: it must also wait for the key that it verifies. */
const WAIT_MS = TIMES.noAnswerMs / 2;

interface ServiceFold extends Looked {
  readonly now: domain.Services;
  revision: number;
}

const take = (fold: ServiceFold, logged: LoggedEvent): void => {
  const gap = gapBefore(logged, fold.revision);
  if (gap !== undefined) throw unreadable(gap);
  if (isAboutServices(logged.type)) {
    const event = operatorEventOf(logged);
    if (event === undefined) throw unreadable(`The event ${logged.id} of type ${logged.type} is not known.`);
    const { at = logged.recordedAt } = (logged.metadata ?? {}) as { readonly at?: string };
    try {
      domain.evolveServices(fold.now, { ...(event as ServiceEvent), at });
    } catch (error) {
      throw unreadable(`The event ${logged.id} is impossible. ${messageOf(error)}`);
    }
  }
  fold.revision = logged.revision;
};

const readToHead = async (fold: ServiceFold, { log, streams }: LedgerLog, at: number): Promise<void> => {
  fold.askedAt = at;
  try {
    for await (const batch of log.readStream(streams.operator(), fold.revision))
      for (const logged of batch) take(fold, logged);
    fold.at = at;
  } catch (error) {
    throw codeOf(error) === 'history_missing' ? unreadable(messageOf(error)) : error;
  } finally {
    fold.askedAt = undefined;
  }
};

export const knownServices = (ledgerLog: LedgerLog, withoutLogMs: number): KnownServices => {
  const { log, streams } = ledgerLog;
  const fold: ServiceFold = { now: domain.noServices(), revision: -1, at: -Infinity };
  /** All requests share a read. */
  const reads = singleFlight((at) => readToHead(fold, ledgerLog, at));

  const current = async (since: number, deadline: number, isRead = false): Promise<domain.Services> => {
    if (fold.at >= since) return fold.now;
    const looking = beforeDeadline(reads.since(since), deadline, late).then(() => fold.now);
    return isRead ? orKnown(looking, () => fold.now, fold, { withoutLogMs, waitMs: WAIT_MS }) : looking;
  };
  const recent = (deadline: number, isRead: boolean) =>
    current(threadMs() - TIMES.keyAgeMs, deadline, isRead);

  return {
    all: (deadline) => current(threadMs(), deadline),
    identify: async ({ digest, at, deadline }, isRead) => {
      const known = domain.serviceWithKey(await recent(deadline, isRead), digest, at);
      if (typeof known !== 'string') return known;
      const found = domain.serviceWithKey(await current(threadMs(), deadline), digest, at);
      if (typeof found === 'string') throw keyRefused(found);
      return found;
    },
    find: async ({ digest, at, deadline }) => {
      const now = await recent(deadline, true).catch(() => undefined);
      const known = now && domain.serviceWithKey(now, digest, at);
      return typeof known === 'string' ? undefined : known;
    },
    execute: async (decide, actor) => {
      for (;;) {
        const now = await current(threadMs(), monotonicMs() + TIMES.waitMs);
        const { revision } = fold;
        const at = isoNow();
        const events = decide(now, at).map((event) => encode(event, { actor, at }));
        try {
          await log.append(streams.operator(), events, revision < 0 ? 'no_stream' : revision, TIMES.waitMs);
          return;
        } catch (error) {
          if (codeOf(error) !== 'stream_changed') throw error;
        }
      }
    },
  };
};
