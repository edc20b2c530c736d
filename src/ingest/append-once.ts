import { randomUUID } from 'node:crypto';
import { BACKGROUND_MS } from '../async/clock';
import type { EventLog, NewEvent, Position, LoggedEvent } from '../event-log/event-log';
import { firstOf } from '../event-log/reading';
import { codeOf } from '../fault';
import { isJsonObject } from '../json';
import { withoutRetry, type Retry } from './retry';

/** The end of a stream, as far as this process has read it. */
interface End {
  revision: number;
  position: Position;
  /** The events that the read models do not show yet, by id and in order. */
  readonly unshown: Map<string, { readonly revision: number; readonly isOurs: boolean }>;
}

interface AppendedOnce {
  /** How many of the events were appended. The others were already there. */
  readonly accepted: number;
  /** The position of the last of them; empty if the read models show all of them. */
  readonly position: Position;
}

const extend = (
  end: End,
  { id, revision, position }: Pick<LoggedEvent, 'id' | 'revision' | 'position'>,
  isOurs: boolean,
): void => {
  end.unshown.set(id, { revision, isOurs });
  Object.assign(end, { revision, position });
};

const forgetShown = ({ unshown }: End, upTo: number): void => {
  for (const [id, { revision }] of unshown) {
    if (revision > upTo) return;
    unshown.delete(id);
  }
};

/** What the `ingestId` of this process adds to the size of an event. */
export const INGEST_ID_BYTES = `,"ingestId":"${randomUUID()}"`.length;

/**
 * Appends each event id once to a stream, even if other processes append the same ids at the same time. The caller has
 * checked the ids against everything up to revision `shown`; this checks them against everything after it, up to the
 * exact revision of the append. If another process appends first, the append fails, and its events are read.
 */
export const onceAppender = (log: EventLog, withRetry: Retry = withoutRetry) => {
  const ends = new Map<string, End>();
  /** Stored with the events: repeating an append succeeds, so two processes could both count the same events. */
  const ingestId = randomUUID();

  const endOf = (stream: string, shown: number): End => {
    const end = ends.get(stream) ?? { revision: shown, position: '', unshown: new Map() };
    ends.set(stream, end);
    end.revision = Math.max(end.revision, shown);
    forgetShown(end, shown);
    return end;
  };

  const isOurs = ({ metadata }: LoggedEvent): boolean =>
    isJsonObject(metadata) && metadata['ingestId'] === ingestId;

  /** Reads what was appended since: by others, or by an append of ours whose outcome was unknown. False: nothing. */
  const readOn = async (stream: string, end: End): Promise<boolean> => {
    const before = end.revision;
    await withRetry(async () => {
      for await (const batch of log.readStream(stream, end.revision))
        for (const event of batch) extend(end, event, isOurs(event));
    });
    return end.revision > before;
  };

  const append = async (stream: string, events: readonly NewEvent[], end: End): Promise<void> => {
    const first = end.revision + 1;
    const expected = first === 0 ? 'no_stream' : end.revision;
    const { revision, position } = await withRetry(() => log.append(stream, events, expected, BACKGROUND_MS));
    const last = await withRetry(() => firstOf(log.readStream(stream, revision - 1)));
    const areOurs = last !== undefined && isOurs(last);
    for (const [at, { id }] of events.entries()) extend(end, { id, revision: first + at, position }, areOurs);
  };

  return async (stream: string, given: readonly NewEvent[], shown: number): Promise<AppendedOnce> => {
    const end = endOf(stream, shown);
    const added = given
      .filter(({ id }) => !end.unshown.has(id))
      .map((event) => ({ ...event, metadata: { ...event.metadata, ingestId } }));
    for (;;) {
      const missing = added.filter(({ id }) => !end.unshown.has(id));
      if (missing.length === 0) {
        const accepted = added.filter(({ id }) => end.unshown.get(id)?.isOurs === true);
        return { accepted: accepted.length, position: end.position };
      }
      try {
        await append(stream, missing, end);
      } catch (error) {
        if (codeOf(error) !== 'stream_changed' || !(await readOn(stream, end))) throw error;
      }
    }
  };
};
