import { randomUUID } from 'node:crypto';
import type { Idempotency, Recorded, TenantEvent } from '../domain/events';
import { logFault } from '../event-log/event-log';

/** How many idempotent requests of one tenant are remembered: the newest ones. */
export const MAX_REPLIES = 10_000;

export interface Reply {
  readonly hash: string;
  /** The key that it came with. */
  readonly keyId?: string;
  /** The revision of the event that the request caused; its answer is made from that event again. */
  readonly revision: number;
}

/** Requests are numbered as they come: which ones are among the newest is a comparison of numbers. */
export interface RememberedReply extends Reply {
  readonly key: string;
  readonly number: number;
}

/** A key counts within one Application, method and path. */
export const replyKey = (applicationId: string, { scope, key }: Pick<Idempotency, 'scope' | 'key'>): string =>
  `${applicationId} ${scope} ${key}`;

const isAmongNewest = ({ number }: RememberedReply, newest: number): boolean => number > newest - MAX_REPLIES;

/**
 * Up to where the requests of a stream are remembered: everything that numbering goes on from. The events of one
 * request are side by side in the stream and share a number, so the last request belongs to it.
 */
export interface ReplyMark {
  readonly revision: number;
  readonly eventId: string;
  /** Of the newest request. 0: there was none. */
  readonly number: number;
  /** The key of the request that the event at `revision` belongs to, or the empty text. */
  readonly lastKey: string;
}

const NO_MARK: ReplyMark = { revision: -1, eventId: '', number: 0, lastKey: '' };

/** A mark that is kept. All that is kept of a stream from one beginning shares an epoch. */
export interface KeptMark extends ReplyMark {
  readonly epoch: string;
}

/**
 * Where remembered requests are kept beyond the memory of a process. Only a saving, like snapshots: what is kept was read
 * from the stream, and can be read again.
 */
export interface KeptReplies {
  /** Undefined: nothing is kept. */
  mark(stream: string): KeptMark | undefined;
  /** The reply to one request, and the mark of that moment. */
  find(stream: string, key: string): { readonly mark?: KeptMark; readonly reply?: RememberedReply };
  /**
   * Adds requests and moves the mark, wholly or not at all. `from` is the mark that they follow; with a negative
   * revision, they replace everything that is kept of the stream. Undefined: something else is kept by now, and nothing
   * was added. Others may have added the same in the meantime: the mark says how far it is.
   */
  add(
    stream: string,
    from: KeptMark,
    to: KeptMark,
    replies: readonly RememberedReply[],
  ): Promise<KeptMark | undefined>;
}

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

/** The most events that are read again when a tenant is loaded. */
const FLUSH_EVENTS = 500;
/** How many are handed over at once: the thread that answers HTTP copies them. */
const FLUSH_REPLIES = 500;
const REPLY_BYTES = 700;

interface TailReply extends RememberedReply {
  readonly eventId: string;
}

interface ReplyTailParts {
  readonly kept: KeptReplies;
  readonly stream: string;
  /** What was found in `kept` and is true of this log. Undefined: what is kept is replaced. */
  readonly mark: KeptMark | undefined;
  /** What this tail rests on is gone. */
  readonly onLost: () => void;
}

interface TailState extends Omit<ReplyTailParts, 'mark'> {
  /** In memory, oldest first. */
  readonly replies: Map<string, TailReply>;
  /** Up to where they are kept, and up to where they are in. */
  base: KeptMark;
  now: ReplyMark;
  isFlushing: boolean;
}

const remember = (state: TailState, event: Recorded<TenantEvent>): void => {
  const { replies, now } = state;
  const { idempotency, actor, keyId, revision, id: eventId } = event;
  const key = idempotency === undefined || actor === undefined ? '' : replyKey(actor.id, idempotency);
  const isAnother = key !== '' && key !== now.lastKey;
  const number = now.number + (isAnother ? 1 : 0);
  state.now = { revision, eventId, number, lastKey: key };
  if (!isAnother || idempotency === undefined) return;
  const earlier = replies.get(key);
  if (earlier !== undefined && isAmongNewest(earlier, number)) return;
  replies.delete(key);
  const reply = { key, hash: idempotency.hash, revision, number, eventId };
  replies.set(key, keyId === undefined ? reply : { ...reply, keyId });
  for (const oldest of replies.keys()) {
    if (replies.size <= MAX_REPLIES) return;
    replies.delete(oldest);
  }
};

const findKept = ({ kept, stream, base, onLost }: TailState, key: string): RememberedReply | undefined => {
  if (base.revision < 0) return undefined;
  const found = kept.find(stream, key);
  if (found.mark?.epoch === base.epoch && found.mark.revision >= base.revision) return found.reply;
  onLost();
  throw logFault('stream_changed', 'The remembered requests are to be read again.');
};

/** The oldest ones in memory, and the mark that is true once they are kept. */
const nextToKeep = ({ replies, now }: TailState): { to: ReplyMark; some: readonly TailReply[] } => {
  const all = [...replies.values()];
  const some = all.slice(0, FLUSH_REPLIES);
  const last = some.at(-1);
  if (last === undefined || some.length === all.length) return { to: now, some };
  const { revision, eventId, number, key: lastKey } = last;
  return { to: { revision, eventId, number, lastKey }, some };
};

/** False: something else is kept by now. */
const keepSome = async (state: TailState): Promise<boolean> => {
  const { kept, stream, base, replies } = state;
  const { to, some } = nextToKeep(state);
  const epoch = base.revision < 0 ? randomUUID() : base.epoch;
  const added = await kept.add(stream, base, { ...to, epoch }, some);
  if (added === undefined) return false;
  state.base = added;
  for (const { key, revision } of replies.values()) {
    if (revision > added.revision) break;
    replies.delete(key);
  }
  return true;
};

const keepAll = async (state: TailState): Promise<void> => {
  for (const { revision } = state.now; state.base.revision < revision;)
    if (!(await keepSome(state))) return state.onLost();
};

export const replyTail = ({ mark, ...parts }: ReplyTailParts): ReplyTail => {
  const base: KeptMark = mark ?? { ...NO_MARK, epoch: '' };
  const state: TailState = { ...parts, replies: new Map(), base, now: base, isFlushing: false };
  return {
    revision: () => state.now.revision,
    take: (event) => {
      if (event.revision > state.now.revision) remember(state, event);
    },
    find: (key) =>
      [findKept(state, key), state.replies.get(key)].find(
        (reply) => reply !== undefined && isAmongNewest(reply, state.now.number),
      ),
    flush: () => {
      if (state.isFlushing || state.now.revision - state.base.revision < FLUSH_EVENTS) return;
      state.isFlushing = true;
      void keepAll(state)
        .catch(() => undefined)
        .finally(() => (state.isFlushing = false));
    },
    bytes: () => state.replies.size * REPLY_BYTES,
  };
};
