import { codeOf, fault, type Fault } from '../fault';
import { TIMES } from '../times';
import {
  bytesOf,
  isJsonObject,
  MAX_APPEND_BYTES,
  upTo,
  type LoggedEvent,
  type NewEvent,
  type Position,
} from './event-log';
import { eventsDigest } from './events-digest';
import type { LedgerLog } from './streams';

/**
 * Copies one event log into another, between any two adapters. The events are appended in log order, at the revisions
 * that they have in the source. Repeating an append writes nothing, so a copy that was interrupted is run again from its
 * start. Until it is complete, nobody can use the target.
 */

export type OnProgress = (step: 'copying' | 'comparing', done: number, total: number) => void;

export interface Copied {
  readonly events: number;
  /** Of the source and of the target: they are equal. */
  readonly digest: string;
}

/** Small enough for live subscribers of EventStoreDB, which drops one that lags behind a larger append. */
const MAX_RUN_EVENTS = 100;

/** An event store keeps the original time in the metadata. */
const RECORDED_AT_BYTES = ',"recordedAt":"2026-01-31T00:00:00.000Z"'.length;

const refused = (why: string): Fault => fault('copy_refused', why);

const nameOf = ({ id, type, revision, stream }: LoggedEvent): string =>
  `${id} (${type}, revision ${revision} of ${stream})`;

/** Why the target would not return the event exactly as it is in the source. */
const reasonAgainst = ({ data, metadata = {} }: LoggedEvent): string | undefined => {
  // A log may return a bare string for data that is labelled JSON but is not.
  if (Buffer.isBuffer(data) || typeof data === 'string' || data === undefined) return 'its data is not JSON';
  if (!isJsonObject(metadata)) return 'its metadata is not a JSON object';
  if (Object.hasOwn(metadata, 'recordedAt'))
    return 'its metadata has a member recordedAt, which is reserved for the log';
  return undefined;
};

const newEventOf = (event: LoggedEvent): NewEvent => {
  const reason = reasonAgainst(event);
  if (reason !== undefined) throw refused(`The event ${nameOf(event)} cannot be copied: ${reason}.`);
  const { id, type, data, metadata = {}, recordedAt } = event;
  return { id, type, data, metadata, recordedAt } as NewEvent;
};

/** Groups events that are adjacent in the log and in the same stream. */
async function* runsOf({ log, streams }: LedgerLog, last: Position): AsyncGenerator<readonly LoggedEvent[]> {
  let run: LoggedEvent[] = [];
  let bytes = 0;
  for await (const batch of upTo(log.readAll(), last))
    for (const event of batch.filter(({ stream }) => streams.holds(stream))) {
      const size = bytesOf(newEventOf(event)) + RECORDED_AT_BYTES;
      const isFull = run.length === MAX_RUN_EVENTS || bytes + size > MAX_APPEND_BYTES;
      if (run.length > 0 && (isFull || run[0]?.stream !== event.stream)) {
        yield run;
        run = [];
        bytes = 0;
      }
      run.push(event);
      bytes += size;
    }
  if (run.length > 0) yield run;
}

const append = async (to: LedgerLog, run: readonly LoggedEvent[]): Promise<void> => {
  const [{ stream, revision }] = run as [LoggedEvent];
  const expected = revision === 0 ? 'no_stream' : revision - 1;
  try {
    await to.log.append(stream, run.map(newEventOf), expected, TIMES.backgroundMs);
  } catch (error) {
    if (codeOf(error) !== 'stream_changed') throw error;
    if (run.length === 1)
      throw refused(
        `The event ${nameOf(run[0] as LoggedEvent)} cannot get this revision in the target: events before it are missing from the source (see \`tenant-ledger log verify\`), or the target is the copy of another log.`,
      );
    // The source may have ended within the run when it was copied before.
    for (const event of run) await append(to, [event]);
  }
};

export const copyLog = async (from: LedgerLog, to: LedgerLog, onProgress: OnProgress): Promise<Copied> => {
  const head = (await from.log.head())?.position;
  if (head === undefined) throw refused('The source contains no events. Check its address.');
  const total = await from.log.distance(undefined, head);
  const source = eventsDigest();
  for await (const run of runsOf(from, head)) {
    await append(to, run);
    for (const event of run) source.add(event);
    onProgress('copying', source.count(), total);
  }
  const target = eventsDigest();
  for await (const batch of to.log.readAll()) {
    for (const event of batch) if (to.streams.holds(event.stream)) target.add(event);
    onProgress('comparing', target.count(), total);
  }
  const copied = { events: source.count(), digest: source.value() };
  const found = target.value();
  if (found !== copied.digest)
    throw refused(
      `The target is not a copy of this source: it has ${target.count()} events with the digest ${found}, the source has ${copied.events} with ${copied.digest}. Remove the target and copy again.`,
    );
  if ((await from.log.head())?.position !== head)
    throw refused(
      'The source was written to in the meantime. Stop whatever writes to it, and run the same command again.',
    );
  await to.log.completeCopy();
  return copied;
};
