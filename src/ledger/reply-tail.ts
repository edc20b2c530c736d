import { randomUUID } from 'node:crypto';
import type { Recorded, TenantEvent } from '../domain/events';
import { logFault } from '../event-log/event-log';
import {
  isAmongNewest,
  MOST_REPLIES,
  NO_MARK,
  replyKey,
  type KeptMark,
  type KeptReplies,
  type RememberedReply,
  type Reply,
  type ReplyMark,
} from './replies';

/**
 * The remembered requests of one tenant: those that are kept, and in memory those that came since. It follows the
 * stream event by event, and only forward.
 */
export interface ReplyTail {
  /** The last revision that is in. */
  revision(): number;
  /** The next event of the stream. What is in already is passed over. */
  take(event: Recorded<TenantEvent>): void;
  /**
   * The reply to a request, of everything up to `revision`; another process may have kept later ones too. Fails with
   * `stream_changed` when what was kept is no longer there: then the tenant is to be read again.
   */
  find(key: string): Reply | undefined;
  /** Keeps what is in memory, if it is enough to be worth it. */
  flush(): void;
  /** Roughly, in memory. */
  bytes(): number;
}

/** So many events are read again at most when a tenant is loaded. */
const FLUSH_EVENTS = 500;
/** So many are handed over at once: the thread that answers HTTP copies them. */
const FLUSH_REPLIES = 500;
const REPLY_BYTES = 700;

interface TailReply extends RememberedReply {
  readonly eventId: string;
}

export interface ReplyTailParts {
  readonly kept: KeptReplies;
  readonly stream: string;
  /** What was found in `kept` and is true of this log. Undefined: what is kept is replaced. */
  readonly mark: KeptMark | undefined;
  /** What this tail rests on is gone. */
  readonly onLost: () => void;
}

export const replyTail = ({ kept, stream, mark, onLost }: ReplyTailParts): ReplyTail => {
  const replies = new Map<string, TailReply>();
  let base: KeptMark = mark ?? { ...NO_MARK, epoch: '' };
  let now: ReplyMark = base;
  let flushing = false;

  const remember = (event: Recorded<TenantEvent>): void => {
    const { idempotency, actor, keyId, revision, id: eventId } = event;
    const key = idempotency === undefined || actor === undefined ? '' : replyKey(actor.id, idempotency);
    const isAnother = key !== '' && key !== now.lastKey;
    now = { revision, eventId, number: now.number + (isAnother ? 1 : 0), lastKey: key };
    if (!isAnother || idempotency === undefined) return;
    const earlier = replies.get(key);
    if (earlier !== undefined && isAmongNewest(earlier, now.number)) return;
    replies.delete(key);
    const { hash } = idempotency;
    const reply = { key, hash, revision, number: now.number, eventId };
    replies.set(key, keyId === undefined ? reply : { ...reply, keyId });
    for (const oldest of replies.keys()) {
      if (replies.size <= MOST_REPLIES) return;
      replies.delete(oldest);
    }
  };

  const lost = (): Error => {
    onLost();
    return logFault('stream_changed', 'The remembered requests are to be read again.');
  };

  const findKept = (key: string): RememberedReply | undefined => {
    if (base.revision < 0) return undefined;
    const found = kept.find(stream, key);
    if (found.mark?.epoch !== base.epoch || found.mark.revision < base.revision) throw lost();
    return found.reply;
  };

  /** The oldest ones in memory, and the mark that is true once they are kept. */
  const nextToKeep = (): { to: ReplyMark; some: readonly TailReply[] } => {
    const all = [...replies.values()];
    const some = all.slice(0, FLUSH_REPLIES);
    const last = some.at(-1);
    if (last === undefined || some.length === all.length) return { to: now, some };
    const { revision, eventId, number, key: lastKey } = last;
    return { to: { revision, eventId, number, lastKey }, some };
  };

  const forget = (upTo: number): void => {
    for (const { key, revision } of replies.values()) {
      if (revision > upTo) return;
      replies.delete(key);
    }
  };

  const ownEpoch = (): string => (base.revision < 0 ? randomUUID() : base.epoch);

  const keepSome = async (): Promise<boolean> => {
    const { to, some } = nextToKeep();
    const added = await kept.add(stream, base, { ...to, epoch: ownEpoch() }, some);
    if (added === undefined) return false;
    base = added;
    forget(base.revision);
    return true;
  };

  const isWorthIt = (): boolean => now.revision - base.revision >= FLUSH_EVENTS;

  const keepAll = async (): Promise<void> => {
    for (const { revision } = now; base.revision < revision;) if (!(await keepSome())) return onLost();
  };

  return {
    revision: () => now.revision,
    take: (event) => {
      if (event.revision > now.revision) remember(event);
    },
    find: (key) =>
      [findKept(key), replies.get(key)].find(
        (reply) => reply !== undefined && isAmongNewest(reply, now.number),
      ),
    flush: () => {
      if (flushing || !isWorthIt()) return;
      flushing = true;
      void keepAll()
        .catch(() => undefined)
        .finally(() => (flushing = false));
    },
    bytes: () => replies.size * REPLY_BYTES,
  };
};
