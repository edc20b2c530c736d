import { fault, messageOf, type Fault } from '../../fault';

/** Maps the server's answers and its silence to faults of the port. The package's errors are distinguished by `type`. */

/** The outcome of the call is unknown. */
export const noAnswer = (why: string): Fault => fault('no_answer', why);

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
/** Also if wrapped in one of our faults. */
export const isUnknown = (error: unknown): boolean =>
  rawOf(error).type === 'unknown' || rawOf((error as Error).cause).type === 'unknown';
/** Not a failure: the server drops live subscribers that lag behind, and expects them to subscribe again. */
export const isLagging = (error: unknown): boolean => rawOf(error).type === 'timeout';
export const isDenied = (error: unknown): boolean => rawOf(error).type === 'access-denied';

/** The message of the server or of gRPC, on one line, without what the packages put around it. */
const grpcMessageOf = (error: unknown): string => {
  const message = messageOf(error)
    .replace(/^Could not recognize /, '')
    .replace(/^\d+ [A-Z_]+: /, '')
    .replace(/\s*Resolution note:\s*$/, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
  return /[a-z]/i.test(message) ? message : 'it gave no reason.';
};

/** gRPC messages that mean the call was never sent. */
const NOT_SENT =
  /No connection established|Name resolution failed|Channel closed before call started|Failed to discover/;

/** Server messages that mean nothing was written. */
const NOT_HANDLED = /Server Is Not Ready|Server Is Too Busy|No leader info available/;

const denied = () =>
  fault(
    'log_unavailable',
    'The event store refuses this user. Check the user and the password in EVENTSTORE_URL, and that the user may read $all, usually as a member of $admins.',
    { isFinal: true },
  );

/** The events of the stream are gone, and retrying will not bring them back. */
export const historyMissing = (stream: string, how: string): Fault =>
  fault('history_missing', `Stream ${stream} ${how} in the event store.`, { isFinal: true });

export const TOMBSTONED = 'was permanently deleted (tombstoned)';

/** The fault for a failed append: a definite one, or `no_answer`. */
export const appendFault = (stream: string, error: unknown): Fault => {
  const { type, actualVersion, maxAppendSize } = rawOf(error);
  switch (type) {
    case 'wrong-expected-version':
      return fault('stream_changed', `Stream ${stream} has changed.`, {
        actual: typeof actualVersion === 'bigint' ? Number(actualVersion) : -1,
      });
    case 'maximum-append-size-exceeded':
      return fault('event_too_large', `The event store takes at most ${maxAppendSize} bytes at once.`);
    case 'access-denied':
      return denied();
    case 'stream-deleted':
      return historyMissing(stream, TOMBSTONED);
    case undefined:
    default:
  }
  const message = grpcMessageOf(error);
  const unavailable = (what: string) => fault('log_unavailable', `The event store ${what}: ${message}`);
  if (NOT_SENT.test(message)) return unavailable('cannot be reached');
  if (NOT_HANDLED.test(message)) return unavailable('is not accepting writes');
  return noAnswer(`The event store did not answer the append: ${message}`);
};

export const readFault = (error: unknown): Fault => {
  if (isDenied(error)) return denied();
  const why = `The event store cannot be read: ${grpcMessageOf(error)}`;
  return Object.assign(fault('log_unavailable', why), { cause: error });
};
