import type { Idempotency } from '../domain/events';

/** How many idempotent requests of one tenant are remembered: the newest ones. */
export const MOST_REPLIES = 10_000;

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

export const isAmongNewest = ({ number }: RememberedReply, newest: number): boolean =>
  number > newest - MOST_REPLIES;

/**
 * Up to where the requests of a stream are remembered: everything that numbering goes on from. The events of one
 * request stand side by side in the stream and share a number, so the last request belongs to it.
 */
export interface ReplyMark {
  readonly revision: number;
  readonly eventId: string;
  /** Of the newest request. 0: there was none. */
  readonly number: number;
  /** The key of the request that the event at `revision` belongs to, or the empty text. */
  readonly lastKey: string;
}

export const NO_MARK: ReplyMark = { revision: -1, eventId: '', number: 0, lastKey: '' };

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
   * was added. Others may have added the same meanwhile: the mark says how far it is.
   */
  add(
    stream: string,
    from: KeptMark,
    to: KeptMark,
    replies: readonly RememberedReply[],
  ): Promise<KeptMark | undefined>;
}
