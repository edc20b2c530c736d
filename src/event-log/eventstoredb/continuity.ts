import type { Continuity, Head } from '../event-log';
import { isGone, writtenIdentity } from './identity';
import type { StreamReader } from './stream-reader';
import type { WholeLog } from './whole-log';

/** The log that was opened, and what it is looked for with. */
export interface Opened {
  readonly reader: StreamReader;
  readonly log: WholeLog;
  /** The name of the stream that says which log it is. */
  readonly stream: string;
  identity(): string;
}

/** What only looks like ours, or was deleted, is not the log that was opened. */
const identityNow = ({ reader, stream }: Opened): Promise<string | undefined> =>
  writtenIdentity(reader, stream).then(
    (found) => found?.identity,
    (error: unknown) => {
      if (!isGone(error)) throw error;
      return undefined;
    },
  );

/**
 * The end is that of the whole server, since the last event of ours may have been scavenged. It is asked for before the
 * event itself: a log that was set back must not grow past the event in between.
 */
export const continuityOf =
  (opened: Opened) =>
  async (known?: Head): Promise<Continuity> => {
    if ((await identityNow(opened)) !== opened.identity()) return 'replaced';
    if (known === undefined) return 'whole';
    const end = await opened.log.end();
    const found = await opened.log.at(known.position);
    if (found?.id === known.eventId) return 'whole';
    return found === undefined && end >= known.position ? 'missing' : 'set_back';
  };
