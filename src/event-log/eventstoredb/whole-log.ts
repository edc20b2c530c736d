import { START, streamNameFilter } from '@eventstore/db-client';
import { TIMES } from '../../times';
import { firstOf, type Batch, type LoggedEvent, type Position } from '../event-log';
import type { Streams } from '../streams';
import type { Connection } from './connection';
import { isUnknown, noAnswer } from './errors';
import { newestEvent, SEARCH_WINDOW } from './head';
import { commitPosition } from './record';
import { batchesOf, READ_AHEAD, sourceOf, type Source } from './source';
import { fromLeader, resuming } from './stream-reader';

/** Asks for a checkpoint every few windows, as a sign of life. */
const WINDOW = { maxSearchWindow: SEARCH_WINDOW, checkpointInterval: 4 };

const subscribeTo = (connection: Connection, from: Position, prefixes: readonly string[]): Source => {
  const subscription = connection.client().subscribeToAll(
    {
      fromPosition: from === '' ? START : commitPosition(from),
      filter: streamNameFilter({
        prefixes: [...prefixes],
        ...WINDOW,
        // Only a sign of life: it tells how far the server has scanned, not what we received, so never resume from it.
        checkpointReached: async () => source.alive(),
      }),
      ...fromLeader,
    },
    READ_AHEAD,
  );
  const source = sourceOf(subscription);
  const stop = () => source.stop(noAnswer('The event store did not confirm a subscription.'));
  const late = setTimeout(stop, TIMES.silentReadMs);
  for (const event of ['confirmation', 'error', 'close', 'end'] as const)
    subscription.on(event, () => clearTimeout(late));
  return source;
};

const firstFrom = (connection: Connection, position: Position): Promise<LoggedEvent | undefined> => {
  const options = { fromPosition: commitPosition(position), maxCount: 1, ...fromLeader };
  const reading = resuming(connection, (client) =>
    batchesOf(sourceOf(client.readAll(options)), TIMES.silentReadMs),
  );
  return firstOf(reading);
};

/** All streams of the server as one log, and our events in it. */
export const wholeLog = (connection: Connection, streams: Streams) => {
  const newest = newestEvent(connection, streams);
  const subscribe = (after: Position): Source =>
    subscribeTo(connection, after === '' ? newest.start() : after, streams.prefixes());

  const pageUpTo = async function* (after: Position, last: Position): AsyncGenerator<Batch> {
    for await (const batch of batchesOf(subscribe(after), TIMES.silentReadMs)) {
      const isDue = ({ position }: LoggedEvent): boolean => position > after && position <= last;
      const wanted = batch.filter((event) => isDue(event) && streams.holds(event.stream));
      if (wanted.length > 0) yield wanted;
      if ((batch.at(-1)?.position ?? '') >= last) return;
    }
    throw new Error('The event store ended a subscription.');
  };

  return {
    ...newest,
    isOurs: streams.holds,
    /** Events after a position, ours and possibly others. May end, fail or fall silent. */
    subscribe,
    /** Our events after one position, up to another that is already in the log. */
    upTo: (after: Position, last: Position): AsyncIterable<Batch> =>
      resuming(connection, async function* (_, reached) {
        const from = reached?.position ?? after;
        if (from < last) yield* pageUpTo(from, last);
      }),
    /** The event at exactly this position, whoever wrote it. */
    at: async (position: Position): Promise<LoggedEvent | undefined> => {
      try {
        const found = await firstFrom(connection, position);
        return found?.position === position ? found : undefined;
      } catch (error) {
        // The error if no event starts at this position. Other errors have the same type, but then `end` fails too.
        if (!isUnknown(error)) throw error;
        await newest.end();
        return undefined;
      }
    },
  };
};

export type WholeLog = ReturnType<typeof wholeLog>;
