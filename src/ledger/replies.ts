import type { Idempotency, Recorded } from '../domain/events';

/** How many idempotent requests of one tenant are remembered: the newest ones. */
export const MOST_REPLIES = 10_000;

export interface Reply {
  readonly hash: string;
  /** The key that it came with. */
  readonly keyId?: string;
  /** The revision of the event that the request caused; its answer is made from that event again. */
  readonly revision: number;
}

/** Oldest first. Owned by one fold, which changes it in place: copying ten thousand entries per write would cost. */
export type Replies = Map<string, Reply>;

/** A key counts within one Application, method and path. */
export const replyKey = (applicationId: string, { scope, key }: Idempotency): string =>
  `${applicationId} ${scope} ${key}`;

export const rememberReply = (replies: Replies, event: Recorded): void => {
  if (event.idempotency === undefined || event.actor === undefined) return;
  const key = replyKey(event.actor.id, event.idempotency);
  if (replies.has(key)) return;
  const { keyId, revision } = event;
  const { hash } = event.idempotency;
  replies.set(key, keyId === undefined ? { hash, revision } : { hash, keyId, revision });
  for (const oldest of replies.keys()) {
    if (replies.size <= MOST_REPLIES) return;
    replies.delete(oldest);
  }
};
