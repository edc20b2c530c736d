import type { LoggedEvent } from './event-log';

const revisions = (first: number, last: number): string =>
  first === last ? `revision ${first}` : `revisions ${first} to ${last}`;

/**
 * Stream revisions count from 0 without gaps. Describes what is missing before an event if the stream was at revision
 * `last` (-1: empty); undefined if the event is the next one.
 */
export const gapBefore = (
  { stream, revision }: Pick<LoggedEvent, 'stream' | 'revision'>,
  last: number,
): string | undefined => {
  if (revision === last + 1) return undefined;
  return revision > last
    ? `Events are missing from the log: the stream ${stream} lacks ${revisions(last + 1, revision - 1)} before this event.`
    : `Events are missing from the log: the stream ${stream} continues with revision ${revision}, although it had reached revision ${last}.`;
};
