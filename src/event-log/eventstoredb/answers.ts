import { beforeDeadline, monotonicMs } from '../../clock';
import { fault, messageOf, moreOf, type Fault } from '../../fault';
import { logFault } from '../event-log';

/** What the server's answers, and its silence, mean to callers of the port. The package's errors are distinguished by `type`. */

/** What became of the call is unknown. */
export const noAnswer = (why: string): Fault => fault('no_answer', why);

/** The package ignores its deadlines for reads, and a frozen server answers nothing: every call gets a timer. */
export const inTime = <T>(call: Promise<T>, withinMs: number): Promise<T> =>
  beforeDeadline(call, monotonicMs() + withinMs, () =>
    noAnswer(`The event store has not answered within ${withinMs} ms.`),
  );

interface Raw {
  readonly type?: string;
  readonly code?: number | string;
  readonly actualVersion?: bigint | 'no_stream';
  readonly maxAppendSize?: number;
}

const rawOf = (error: unknown): Raw => (typeof error === 'object' && error !== null ? error : {});

export const isNotLeader = (error: unknown): boolean => rawOf(error).type === 'not-leader';
export const isMissingStream = (error: unknown): boolean => rawOf(error).type === 'stream-not-found';
export const isDeletedStream = (error: unknown): boolean => rawOf(error).type === 'stream-deleted';
/** Also after it was turned into a fault of ours. */
export const isUnknown = (error: unknown): boolean =>
  rawOf(error).type === 'unknown' || rawOf((error as Error).cause).type === 'unknown';
/** The server drops a live subscriber that does not keep up and expects it to subscribe again: nothing is wrong. */
export const isLagging = (error: unknown): boolean => rawOf(error).type === 'timeout';
export const isDenied = (error: unknown): boolean => rawOf(error).type === 'access-denied';

/** The message of gRPC, without its code and an empty note. */
const wordsOf = (error: unknown): string =>
  messageOf(error)
    .replace(/^\d+ [A-Z_]+: /, '')
    .replace(/\s*Resolution note:\s*$/, '');

/** By the message of gRPC, the call never left this machine: no connection, or no address for the name. */
const NOT_SENT =
  /No connection established|Name resolution failed|Channel closed before call started|Failed to discover/;

/** The server's messages that mean: nothing was done. */
const NOT_HANDLED = /Server Is Not Ready|Server Is Too Busy|No leader info available/;

const denied = () =>
  logFault(
    'log_unavailable',
    'The event store refuses this user. Check the user and the password in EVENTSTORE_URL; $all can be read by $admins only.',
    { isFinal: true },
  );

/** Retrying does not help. */
export const isFinal = (error: unknown): boolean => moreOf(error)['isFinal'] === true;

/** What was in the stream is gone, and retrying does not bring it back. */
export const historyMissing = (stream: string, how: string): Fault =>
  logFault('history_missing', `Stream ${stream} ${how} in the event store.`, { isFinal: true });

export const TOMBSTONED = 'was permanently deleted (tombstoned)';

/** The fault for a failed append: a certain answer, or `no_answer`. */
export const appendFault = (stream: string, error: unknown): Fault => {
  const { type, actualVersion, maxAppendSize } = rawOf(error);
  switch (type) {
    case 'wrong-expected-version':
      return logFault('stream_changed', `Stream ${stream} has changed.`, {
        actual: typeof actualVersion === 'bigint' ? Number(actualVersion) : -1,
      });
    case 'maximum-append-size-exceeded':
      return logFault(
        'event_too_large',
        `The event store takes at most ${maxAppendSize} bytes in one append.`,
      );
    case 'access-denied':
      return denied();
    case 'stream-deleted':
      return historyMissing(stream, TOMBSTONED);
    case undefined:
    default:
  }
  const words = wordsOf(error);
  if (NOT_SENT.test(words)) return logFault('log_unavailable', `The event store cannot be reached: ${words}`);
  if (NOT_HANDLED.test(words))
    return logFault('log_unavailable', `The event store is not accepting writes: ${words}`);
  return noAnswer(`The event store did not answer the append: ${words}`);
};

export const readFault = (error: unknown): Fault =>
  isDenied(error)
    ? denied()
    : Object.assign(logFault('log_unavailable', `The event store cannot be read: ${wordsOf(error)}`), {
        cause: error,
      });
