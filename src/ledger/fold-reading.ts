import { threadMs, yieldToEventLoop } from '../async/clock';
import type { Turns } from '../async/turns';
import type { LedgerLog } from '../event-log/ledger-log';
import { foldingStream, tenantEventOf, type Fold, type KnownTenant } from './fold';

/** The maximum time on the thread before yielding to the event loop. */
const MAX_HOLD_MS = 2;
const CHECK_EVERY = 16;

/** Yields to the event loop once MAX_HOLD_MS has passed. */
const pacer = () => {
  let startedAt = threadMs();
  let count = 0;
  return async (): Promise<void> => {
    count += 1;
    if (count % CHECK_EVERY !== 0 || threadMs() - startedAt < MAX_HOLD_MS) return;
    await yieldToEventLoop();
    startedAt = threadMs();
  };
};

/** Whoever has read this many events lets others have their turn before it reads on. */
const TURN_EVENTS = 2_000;

/** Reads from where the fold and the remembered requests end up to the head of the stream, turn by turn. */
export const readToHead = async (
  tenantId: string,
  { fold, requests }: KnownTenant,
  { log, streams }: LedgerLog,
  inTurn: Turns,
): Promise<Fold> => {
  const folding = foldingStream(fold, tenantId);
  const yieldWhenDue = pacer();
  let revision = Math.min(fold.revision, requests.revision());

  /** Returns how many it has read. The read is not left open while others have their turn. */
  const readSome = async (): Promise<number> => {
    let count = 0;
    for await (const batch of log.readStream(streams.tenant(tenantId), revision)) {
      for (const logged of batch) {
        const event = tenantEventOf(logged, revision, tenantId, streams);
        ({ revision } = logged);
        if (revision > folding.revision()) folding.take(event);
        requests.take(event);
        await yieldWhenDue();
      }
      count += batch.length;
      if (count >= TURN_EVENTS) break;
    }
    return count;
  };

  for (let count = TURN_EVENTS; count >= TURN_EVENTS;) count = await inTurn(readSome);
  return folding.fold();
};
