import { codeOf } from '../fault';
import { TIMES } from '../times';
import type { EventLog, LoggedEvent, NewEvent, Position } from './event-log';

/** Repeats an action that fails because a store is away, as during the election of a new leader. */
export type Retry = <T>(action: () => Promise<T>) => Promise<T>;

/** The end of a stream, as far as this process has read it. */
interface End {
  revision: number;
  position: Position;
  /** The revisions of the events that the read models do not show yet, by id and in order. */
  readonly unshown: Map<string, number>;
}

const extend = (end: End, { id, revision, position }: Pick<LoggedEvent, 'id' | 'revision' | 'position'>) => {
  end.unshown.set(id, revision);
  Object.assign(end, { revision, position });
};

const forgetShown = ({ unshown }: End, upTo: number): void => {
  for (const [id, revision] of unshown) {
    if (revision > upTo) return;
    unshown.delete(id);
  }
};

/**
 * Appends each event id once to a stream, even if other processes append the same ids at the same time. The caller has
 * checked the ids against everything up to revision `shown`; this checks them against everything after it, up to the
 * exact revision of the append. If another process appends first, the append fails, and its events are read.
 */
export const onceAppender = (log: EventLog, withRetry: Retry) => {
  const ends = new Map<string, End>();

  const endOf = (stream: string, shown: number): End => {
    const end = ends.get(stream) ?? { revision: shown, position: '', unshown: new Map() };
    ends.set(stream, end);
    end.revision = Math.max(end.revision, shown);
    forgetShown(end, shown);
    return end;
  };

  /** Reads what was appended since: by others, or by an append of ours whose outcome was unknown. False: nothing. */
  const readOn = async (stream: string, end: End): Promise<boolean> => {
    const before = end.revision;
    await withRetry(async () => {
      for await (const batch of log.readStream(stream, end.revision))
        for (const event of batch) extend(end, event);
    });
    return end.revision > before;
  };

  const append = async (stream: string, events: readonly NewEvent[], end: End): Promise<void> => {
    const first = end.revision + 1;
    const expected = first === 0 ? 'no_stream' : end.revision;
    const { position } = await withRetry(() => log.append(stream, events, expected, TIMES.backgroundMs));
    for (const [at, { id }] of events.entries()) extend(end, { id, revision: first + at, position });
  };

  /** How many were not there yet, and the position of the last of all; empty if the read models show them. */
  return async (stream: string, given: readonly NewEvent[], shown: number) => {
    const end = endOf(stream, shown);
    for (;;) {
      const missing = given.filter(({ id }) => !end.unshown.has(id));
      try {
        if (missing.length > 0) await append(stream, missing, end);
        return { accepted: missing.length, position: end.position };
      } catch (error) {
        if (codeOf(error) !== 'stream_changed' || !(await readOn(stream, end))) throw error;
      }
    }
  };
};
