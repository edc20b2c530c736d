import { pause } from '../../clock';
import type { LoggedEvent, Position } from '../event-log';
import type { Live } from './live';
import type { Batch } from './source';
import type { WholeLog } from './whole-log';

export interface Following {
  readonly after: Position;
  readonly signal?: AbortSignal | undefined;
  readonly isWanted: (event: LoggedEvent) => boolean;
  /** Reads what is wanted between two positions. */
  readonly upTo: (after: Position, last: Position) => AsyncIterable<Batch>;
}

const AGAIN_MS = 500;

/**
 * Follows until the signal is aborted or the log is closed. Whoever keeps up is served from what the one subscription
 * took in; whoever is behind reads the log by itself up to its head, and then looks again.
 */
export const follow = async function* (live: Live, log: WholeLog, from: Following): AsyncGenerator<Batch> {
  const { recent } = live;
  const { signal, isWanted, upTo } = from;
  const isOver = (): boolean => live.isClosed() || signal?.aborted === true;
  let after = from.after;

  const fromLog = async function* (): AsyncGenerator<Batch> {
    try {
      const head = (await log.head())?.position ?? '';
      for await (const batch of upTo(after, head)) {
        after = batch.at(-1)?.position ?? after;
        yield batch;
        if (isOver()) return;
      }
      if (head > after) after = head;
    } catch (error) {
      if (isOver()) return;
      live.tell(error);
      await pause(AGAIN_MS, signal);
    }
  };

  const fromMemory = function* (kept: Batch): Generator<Batch> {
    after = kept.at(-1)?.position ?? after;
    const batch = kept.filter(isWanted);
    if (batch.length > 0) yield batch;
  };

  live.join();
  try {
    while (!isOver()) {
      const kept = recent.after(after);
      if (kept === undefined && recent.isBegun()) yield* fromLog();
      else if (kept === undefined || kept.length === 0)
        await live.news(() => recent.isBegun() && (kept === undefined || recent.reached() > after), signal);
      else yield* fromMemory(kept);
    }
  } finally {
    live.part();
  }
};
