import type {
  AllStreamResolvedEvent,
  AllStreamSubscription,
  ResolvedEvent,
  StreamingRead,
} from '@eventstore/db-client';
import type { Readable } from 'node:stream';
import { letOthersGo } from '../../clock';
import type { LoggedEvent } from '../event-log';
import { noAnswer } from './answers';
import { eventOf } from './record';

export type Batch = readonly LoggedEvent[];

/** A batch ends at whichever comes first. */
const BATCH_EVENTS = 512;
const BATCH_BYTES = 1_048_576;

/** How many events the package may read ahead. */
export const READ_AHEAD = { highWaterMark: 128 };

/** A read or a subscription of the package: it may end, fail or fall silent, and must be told when it is not wanted. */
export interface Source {
  /** What has arrived, up to a full batch. */
  take(): Batch;
  /** Waits for more: true when there may be some, false at the end. Rejects when it failed or nothing came for so long. */
  more(): Promise<boolean>;
  /** Other signs of life count as well. */
  alive(): void;
  /** Ends it from this side, with an error or in order. */
  stop(error?: Error): void;
}

export type Reading =
  StreamingRead<ResolvedEvent> | StreamingRead<AllStreamResolvedEvent> | AllStreamSubscription;

/**
 * The call is cancelled, and what is on the way is thrown away: left unread, it would keep the call and with it the
 * process. To cancel may itself wait for a server that is not there.
 */
const leave = (given: Reading, reading: Readable): void => {
  const left = 'unsubscribe' in given ? given.unsubscribe() : given.cancel();
  left.catch(() => undefined);
  reading.removeAllListeners('readable');
  reading.resume();
};

const idle = (): void => undefined;

export const sourceOf = (given: Reading, silentMs?: number): Source => {
  const reading = given as unknown as Readable;
  let failure: Error | undefined;
  let ended = false;
  /** Something came, perhaps the end, that was not looked at yet. */
  let isReadable = false;
  let wake = idle;
  let timer: NodeJS.Timeout | undefined;
  const settle = (error?: Error): void => {
    failure ??= error;
    ended = true;
    wake();
  };
  reading.on('readable', () => {
    isReadable = true;
    wake();
  });
  reading.on('end', () => settle());
  reading.on('close', () => settle());
  // Stays for ever: an error that comes after the end must not end the process.
  reading.on('error', settle);

  const alive = (): void => {
    clearTimeout(timer);
    if (silentMs === undefined || wake === idle) return;
    timer = setTimeout(() => settle(noAnswer(`Nothing came for ${silentMs} ms.`)), silentMs);
  };
  const woken = (): Promise<void> =>
    new Promise((resolve) => {
      wake = () => {
        wake = idle;
        clearTimeout(timer);
        resolve();
      };
      alive();
    });

  const take = (): Batch => {
    const batch: LoggedEvent[] = [];
    let bytes = 0;
    while (batch.length < BATCH_EVENTS && bytes < BATCH_BYTES) {
      const next = reading.read() as ResolvedEvent | null;
      if (next === null) {
        isReadable = false;
        break;
      }
      if (next.event === undefined) continue;
      const event = eventOf(next.event);
      batch.push(event);
      bytes += event.bytes ?? 0;
    }
    return batch;
  };

  return {
    take,
    alive,
    more: async () => {
      if (!isReadable && !ended) {
        await woken();
        await letOthersGo();
      }
      if (failure !== undefined) throw failure;
      return !ended || reading.readableLength > 0;
    },
    stop: (error) => {
      settle(error);
      clearTimeout(timer);
      leave(given, reading);
    },
  };
};

/** Everything that comes, in batches none of which is empty. However it is left, the source is stopped. */
export const batchesOf = async function* (source: Source): AsyncGenerator<Batch> {
  try {
    while (await source.more()) {
      const batch = source.take();
      if (batch.length > 0) yield batch;
    }
  } finally {
    source.stop();
  }
};
