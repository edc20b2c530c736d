import { ReadReq, type ReadResp } from '@eventstore/db-client/generated/streams_pb';
import { status, type ServerWritableStream } from '@grpc/grpc-js';
import { randomUUID } from 'node:crypto';
import { caughtUp, checkpoint, confirmation, eventOf, nameOf, notFound, rpcError } from './messages';
import type { StoredLog, StoredRecord } from './stored-log';

export type ReadCall = ServerWritableStream<ReadReq, ReadResp>;

/** [source] The default search window of a filter. */
const WINDOW = 32;
/** How many records are sent before yielding to other calls. */
const TURN = 100;
/**
 * [seen] The live buffer holds 32 events: an append of 500 overran it within two or three, one of 1,000 at once, one of
 * 100 never. The real one is a race between threads; here it is a number.
 */
const LIVE_BACKLOG = 600;

const TOO_SLOW = 'Consumer too slow to handle event while live. Client resubscription required.';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Writes, and waits while the client does not read. False if the call has ended. */
const write = (call: ReadCall, message: ReadResp): Promise<boolean> =>
  new Promise((resolve) => {
    if (call.cancelled || call.destroyed || call.writableEnded) return resolve(false);
    if (call.write(message)) return resolve(true);
    const over = (): void => done(false);
    const drained = (): void => done(true);
    const done = (answer: boolean): void => {
      call.off('drain', drained).off('cancelled', over).off('close', over);
      resolve(answer);
    };
    call.on('drain', drained).on('cancelled', over).on('close', over);
  });

/** [seen] A position that is not a record boundary is an unknown error; one beyond the end is accepted silently. */
const indexOf = (log: StoredLog, position: ReadReq.Options.Position): number => {
  const found = log.indexAt(BigInt(position.getCommitPosition()));
  if (found === undefined) throw rpcError(status.UNKNOWN, 'Exception was thrown by handler.');
  return found;
};

const filterOf = (options: ReadReq.Options): ((record: StoredRecord) => boolean) => {
  const prefixes = options.getFilter()?.getStreamIdentifier()?.getPrefixList() ?? [];
  return ({ stream }) => prefixes.length === 0 || prefixes.some((prefix) => stream.startsWith(prefix));
};

const isBackwards = (options: ReadReq.Options): boolean =>
  options.getReadDirection() === ReadReq.Options.ReadDirection.BACKWARDS;

/** The index of the first record of a read, or undefined if there is no such stream. */
const placeIn = (log: StoredLog, options: ReadReq.Options) => {
  const backwards = isBackwards(options);
  const all = options.getAll();
  if (all !== undefined) {
    const { records } = log;
    const place = all.getPosition();
    const at = place === undefined ? (all.hasEnd() ? records.length : 0) : indexOf(log, place);
    // [seen] Inclusive forwards, exclusive backwards.
    return { records, first: backwards ? at - 1 : at };
  }
  const from = options.getStream();
  const stream = nameOf(from?.getStreamIdentifier());
  const records = log.find(stream);
  if (records === 'deleted')
    throw rpcError(status.FAILED_PRECONDITION, `Event stream '${stream}' is deleted.`, {
      exception: 'stream-deleted',
      'stream-name': stream,
    });
  if (records === 'not_found') return undefined;
  if (from?.hasStart() === true) return { records, first: 0 };
  const last = records.length - 1;
  if (from?.hasEnd() === true) return { records, first: last };
  const revision = Number(from?.getRevision() ?? 0);
  const at = records.findIndex((record) => record.revision >= revision);
  if (at < 0) return { records, first: backwards ? last : records.length };
  // [unseen] Backwards from a revision that does not exist: from the one before it.
  return { records, first: backwards && records[at]?.revision !== revision ? at - 1 : at };
};

/** [seen] With a filter, the count is of matching records, and the read ends where the log does. */
function* recordsWanted(log: StoredLog, options: ReadReq.Options): Generator<StoredRecord> {
  const { records, first } = placeIn(log, options) ?? { records: [], first: 0 };
  const isWanted = filterOf(options);
  const end = records.length;
  const step = isBackwards(options) ? -1 : 1;
  let left = Number(options.getCount());
  for (let at = first; at >= 0 && at < end && left > 0; at += step) {
    const record = records[at];
    if (record === undefined) return;
    if (!isWanted(record)) continue;
    left -= 1;
    yield record;
  }
}

/** True if everything was sent, and the call is to be ended. */
export const readOnce = async (log: StoredLog, call: ReadCall, options: ReadReq.Options) => {
  if (placeIn(log, options) === undefined)
    await write(call, notFound(nameOf(options.getStream()?.getStreamIdentifier())));
  // [seen] A read of zero events never ends.
  if (Number(options.getCount()) === 0) return false;
  let sent = 0;
  for (const record of recordsWanted(log, options)) {
    if (!(await write(call, eventOf(record)))) return false;
    sent += 1;
    if (sent % TURN === 0) await turn();
  }
  return true;
};

export interface Subscription {
  /** A normal end, without an error. */
  end(): void;
  /** It stays open, but goes silent. */
  mute(): void;
  fail(code: number, details: string): void;
  /** Claims that everything up to here was checked, although it was not sent. */
  lie(position: bigint): void;
}

const startOf = (log: StoredLog, options: ReadReq.Options): number => {
  const all = options.getAll();
  const place = all?.getPosition();
  if (place === undefined) return all?.hasEnd() === true ? log.records.length : 0;
  // [seen] A subscription starts after the event at its position.
  return Math.min(log.records.length, indexOf(log, place) + 1);
};

export const subscribe = (log: StoredLog, call: ReadCall, options: ReadReq.Options): Subscription => {
  const isWanted = filterOf(options);
  const filter = options.getFilter();
  const interval =
    (filter?.hasMax() === true ? filter.getMax() : WINDOW) * (filter?.getCheckpointintervalmultiplier() ?? 1);
  let next = startOf(log, options);
  let scanned = 0;
  let isLive = false;
  let isMute = false;
  let isOver = false;
  let wake = (): void => undefined;

  const over = (): void => {
    isOver = true;
    unlisten();
    wake();
  };
  const fail = (code: number, details: string): void => {
    if (isOver) return;
    over();
    call.emit('error', rpcError(code, details));
  };
  const unlisten = log.onAppended(() => {
    // [seen] Code 10. A consumer that lags is dropped, and has to resubscribe.
    if (isLive && !isMute && log.records.length - next > LIVE_BACKLOG) fail(status.ABORTED, TOO_SLOW);
    wake();
  });
  call.on('cancelled', over).on('close', over);

  const send = async (record: StoredRecord): Promise<void> => {
    scanned += 1;
    if (isWanted(record)) await write(call, eventOf(record));
    // [seen] One per this many events checked, none while idle, never ahead of what was sent.
    if (scanned % interval === 0) await write(call, checkpoint(record.position));
    if (scanned % TURN === 0) await turn();
  };
  const news = (): Promise<void> =>
    new Promise((resolve) => {
      wake = resolve;
      if (isOver || (!isMute && next < log.records.length)) resolve();
    });

  const run = async (): Promise<void> => {
    await write(call, confirmation(randomUUID()));
    while (!isOver) {
      while (!isOver && !isMute && next < log.records.length) {
        const record = log.records[next] as StoredRecord;
        next += 1;
        await send(record);
      }
      // [seen] Once, before any live event.
      if (!isLive && !isOver && !isMute) await write(call, caughtUp());
      isLive = true;
      await news();
    }
  };
  void run();

  return {
    end: () => {
      over();
      call.end();
    },
    mute: () => {
      isMute = true;
    },
    fail,
    lie: (position) => call.write(checkpoint(position)),
  };
};
