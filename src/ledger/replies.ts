import { randomUUID } from 'node:crypto';
import type { Idempotency, Recorded, TenantEvent } from '../domain/events';
import { logFault } from '../event-log/event-log';

/** Only this many of a tenant's idempotent requests are remembered, the newest. */
export const MAX_REPLIES = 10_000;

export interface Reply {
  readonly hash: string;
  /** The API key of the request. */
  readonly keyId?: string;
  /** The revision of the first event that the request caused. The answer is rebuilt from its events. */
  readonly revision: number;
}

/** Requests are numbered in order, so comparing numbers tells which are among the newest. */
export interface RememberedReply extends Reply {
  readonly key: string;
  readonly number: number;
}

/** Idempotency keys are scoped to Application, method and path. */
export const replyKey = (applicationId: string, { scope, key }: Pick<Idempotency, 'scope' | 'key'>): string =>
  `${applicationId} ${scope} ${key}`;

const isAmongNewest = ({ number }: RememberedReply, newest: number): boolean => number > newest - MAX_REPLIES;

/**
 * How far the requests of a stream are recorded, with all that is needed to continue numbering them. The events of one
 * request are adjacent in the stream and share a number, hence `lastKey`.
 */
export interface ReplyMark {
  readonly revision: number;
  readonly eventId: string;
  /** The number of the newest request. 0: none yet. */
  readonly number: number;
  /** The `replyKey` of the request that caused the event at `revision`, or empty. */
  readonly lastKey: string;
}

const NO_MARK: ReplyMark = { revision: -1, eventId: '', number: 0, lastKey: '' };

/** A stored mark. Starting over from the beginning of a stream starts a new epoch. */
export interface KeptMark extends ReplyMark {
  readonly epoch: string;
}

/**
 * Stores remembered requests outside the process. Like snapshots, this is only a cache: everything in it can be read
 * from the stream again.
 */
export interface KeptReplies {
  /** Undefined: nothing is stored. */
  mark(stream: string): KeptMark | undefined;
  /** The reply to one request, and the mark at that moment. */
  find(stream: string, key: string): { readonly mark?: KeptMark; readonly reply?: RememberedReply };
  /**
   * Atomically adds requests and moves the mark. `from` is the mark that they follow; if its revision is negative, they
   * replace everything stored for the stream. Undefined: the stored mark is another one by now, and nothing was added.
   * Another process may have added the same and more: the returned mark says how far it got.
   */
  add(
    stream: string,
    from: KeptMark,
    to: KeptMark,
    replies: readonly RememberedReply[],
  ): Promise<KeptMark | undefined>;
}

/**
 * The remembered requests of one tenant: the stored ones, and those since then in memory. Follows the stream event by
 * event, forward only.
 */
export interface ReplyTail {
  /** The last revision included. */
  revision(): number;
  /** Takes the next event of the stream. Events already included are ignored. */
  take(event: Recorded<TenantEvent>): void;
  /**
   * Finds the reply to a request up to `revision`, or later if another process stored more. Throws `stream_changed` if
   * the stored requests are gone: then the tenant must be read again.
   */
  find(key: string): Reply | undefined;
  /** Stores what is in memory once there is enough of it. */
  flush(): void;
  /** Estimated memory use. */
  bytes(): number;
}

/** Bounds how many events are read again when a tenant is loaded. */
const FLUSH_EVENTS = 500;
/** Bounds the size of a message to the writer thread, which the HTTP thread has to copy. */
const FLUSH_REPLIES = 500;
const REPLY_BYTES = 700;

interface TailReply extends RememberedReply {
  readonly eventId: string;
}

interface ReplyTailParts {
  readonly kept: KeptReplies;
  readonly stream: string;
  /** The stored mark, if it matches this log. Undefined: replace what is stored. */
  readonly mark: KeptMark | undefined;
  /** Called when the stored requests that this tail builds on are gone. */
  readonly onLost: () => void;
}

interface TailState extends Omit<ReplyTailParts, 'mark'> {
  /** In memory, oldest first. */
  readonly replies: Map<string, TailReply>;
  /** How far they are stored, and how far they are included. */
  base: KeptMark;
  now: ReplyMark;
  isFlushing: boolean;
}

const remember = (state: TailState, event: Recorded<TenantEvent>): void => {
  const { replies, now } = state;
  const { idempotency, actor, keyId, revision, id: eventId } = event;
  const key = idempotency === undefined || actor === undefined ? '' : replyKey(actor.id, idempotency);
  const isNewRequest = key !== '' && key !== now.lastKey;
  const number = now.number + (isNewRequest ? 1 : 0);
  state.now = { revision, eventId, number, lastKey: key };
  if (!isNewRequest || idempotency === undefined) return;
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
  throw logFault('stream_changed', 'The remembered requests must be read again.');
};

/** The oldest requests in memory, and the mark once they are stored. */
const nextBatch = ({ replies, now }: TailState): { to: ReplyMark; batch: readonly TailReply[] } => {
  const all = [...replies.values()];
  const batch = all.slice(0, FLUSH_REPLIES);
  const last = batch.at(-1);
  if (last === undefined || batch.length === all.length) return { to: now, batch };
  const { revision, eventId, number, key: lastKey } = last;
  return { to: { revision, eventId, number, lastKey }, batch };
};

/** False: the stored mark is another one by now. */
const storeBatch = async (state: TailState): Promise<boolean> => {
  const { kept, stream, base, replies } = state;
  const { to, batch } = nextBatch(state);
  const epoch = base.revision < 0 ? randomUUID() : base.epoch;
  const added = await kept.add(stream, base, { ...to, epoch }, batch);
  if (added === undefined) return false;
  state.base = added;
  for (const { key, revision } of replies.values()) {
    if (revision > added.revision) break;
    replies.delete(key);
  }
  return true;
};

const storeAll = async (state: TailState): Promise<void> => {
  for (const { revision } = state.now; state.base.revision < revision;)
    if (!(await storeBatch(state))) return state.onLost();
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
      void storeAll(state)
        .catch(() => undefined)
        .finally(() => (state.isFlushing = false));
    },
    bytes: () => state.replies.size * REPLY_BYTES,
  };
};
