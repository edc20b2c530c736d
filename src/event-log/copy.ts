import { monotonicMs, pause, RETRY_MS } from '../async/clock';
import { codeOf, fault, messageOf, type Fault } from '../fault';
import { isJsonObject } from '../json';
import { bytesOf, MAX_APPEND_BYTES, type NewEvent, type Position } from './event-log';
import { gapBefore } from './gap';
import type { LedgerLog } from './ledger-log';
import { differenceOf, comparableOf, runningDigest, type ComparableEvent } from './comparable-events';

/**
 * Copies one event log into another, between any two adapters.
 * At every moment the target is a prefix of the source: events are appended in log order, at the revisions that they have
 * in the source. So a killed copy is resumed by reading both logs side by side until the target ends. The same comparison
 * verifies what was appended.
 */

interface CopyOptions {
  /** The source counts as quiet after this long without new events. */
  readonly quietMs: number;
  /** Keep copying until the source is quiet. Otherwise a growing source is refused. */
  readonly follow: boolean;
  readonly onProgress: (step: CopyStep) => void;
}

export interface CopyStep {
  readonly step: 'comparing' | 'copying';
  readonly done: number;
  /** An estimate where counting would mean reading the log. */
  readonly total: number;
}

export interface Copied {
  /** In total, copied by this run or earlier ones. */
  readonly events: number;
  /** By this run. */
  readonly copied: number;
  /** Events in other streams. */
  readonly foreign: { readonly source: number; readonly target: number };
  /** See `runningDigest`. */
  readonly digest: { readonly source: string; readonly target: string };
}

/** Small enough for live subscribers of EventStoreDB, which drops one that lags behind a larger append. */
const MAX_RUN_EVENTS = 100;

/** The copy fails if a log is out of reach for longer than this; running it again resumes it. */
const MAX_AWAY_MS = 30_000;
const APPEND_MS = 10_000;

const nameOf = ({ event }: ComparableEvent): string =>
  `${event.id} (${event.type}, revision ${event.revision} of ${event.stream})`;

/** One of the two logs, and how far it has been compared and found equal. */
interface Reading {
  /** The events after those taken, up to a position. For the source, throws where events are missing. */
  events(upTo?: Position): AsyncGenerator<ComparableEvent, undefined>;
  take(comparable: ComparableEvent): void;
  count(): number;
  foreign(): number;
  digest(): string;
}

const notCopied = (comparable: ComparableEvent, reason: string): Fault =>
  fault('copy_refused', `The event ${nameOf(comparable)} cannot be copied: ${reason}`);

const readingOf = ({ log, streams }: LedgerLog, role: 'source' | 'target'): Reading => {
  const digest = runningDigest();
  /** The last revision taken of each stream. */
  const revisions = new Map<string, number>();
  let after: Position | undefined;
  let count = 0;
  let foreign = 0;
  let lastForeign = '';

  const checked = (comparable: ComparableEvent, reached: Map<string, number>): ComparableEvent => {
    const gap = gapBefore(comparable.event, reached.get(comparable.name) ?? -1);
    if (role === 'source' && gap !== undefined) throw notCopied(comparable, gap);
    reached.set(comparable.name, comparable.event.revision);
    return comparable;
  };

  async function* events(upTo?: Position): AsyncGenerator<ComparableEvent, undefined> {
    const reached = new Map(revisions);
    for await (const batch of log.readAll({ after }))
      for (const event of batch) {
        if (upTo !== undefined && event.position > upTo) return;
        const name = streams.withoutPrefix(event.stream);
        if (name !== undefined) yield checked(comparableOf(event, name), reached);
        else if (event.position > lastForeign) {
          // The same range may be read twice.
          lastForeign = event.position;
          foreign += 1;
        }
      }
  }

  return {
    events,
    take: (comparable) => {
      digest.add(comparable);
      revisions.set(comparable.name, comparable.event.revision);
      after = comparable.event.position;
      count += 1;
    },
    count: () => count,
    foreign: () => foreign,
    digest: digest.soFar,
  };
};

const notACopy = (why: string, here: string): Fault =>
  fault('copy_differs', `The target is not a copy of this source: ${why} ${here}`);

/** Continues the comparison: is the target complete? Throws at the first difference. */
const compare = async (
  source: Reading,
  target: Reading,
  upTo: Position,
  onProgress: (done: number) => void,
): Promise<'complete' | 'incomplete'> => {
  const copies = target.events();
  const number = (): string => `event number ${source.count() + 1}`;
  try {
    for await (const original of source.events(upTo)) {
      const next = await copies.next();
      if (next.done === true) return 'incomplete';
      const difference = differenceOf(original, next.value);
      if (difference !== undefined)
        throw notACopy(
          `${number()} is ${nameOf(next.value)}, where the source has ${nameOf(original)}.`,
          `They differ in: ${difference}.`,
        );
      source.take(original);
      target.take(next.value);
      onProgress(source.count());
    }
    const more = await copies.next();
    if (more.done !== true)
      throw notACopy(
        `it also contains ${nameOf(more.value)} as ${number()},`,
        'which the source does not have there.',
      );
    return 'complete';
  } finally {
    await copies.return(undefined);
  }
};

/** JavaScript parses very large JSON numbers as Infinity, and would write them as null. */
const hasInfinity = (value: unknown): boolean => {
  if (typeof value === 'number') return !Number.isFinite(value);
  return typeof value === 'object' && value !== null && Object.values(value).some(hasInfinity);
};

/** Refuses events that the target would not return exactly as they are in the source. */
const reasonAgainst = ({ event: { data, metadata = {} }, text }: ComparableEvent): string | undefined => {
  // A log may return a bare string for data that is labelled JSON but is not.
  if (Buffer.isBuffer(data) || typeof data === 'string' || data === undefined) return 'its data is not JSON';
  if (!isJsonObject(metadata)) return 'its metadata is not a JSON object';
  if (Object.hasOwn(metadata, 'recordedAt'))
    return 'its metadata has a member recordedAt, which is reserved for the log';
  if ((text.data + text.metadata).includes('null') && (hasInfinity(data) || hasInfinity(metadata)))
    return 'it contains a number that is too large';
  return undefined;
};

const newEventOf = (comparable: ComparableEvent): NewEvent => {
  const { id, type, data, metadata = {}, recordedAt } = comparable.event;
  const reason = reasonAgainst(comparable);
  if (reason !== undefined) throw notCopied(comparable, `${reason}.`);
  return {
    id,
    type,
    data: data as NewEvent['data'],
    metadata: metadata as NewEvent['metadata'],
    recordedAt,
  };
};

interface Run {
  readonly name: string;
  readonly first: ComparableEvent;
  readonly events: readonly NewEvent[];
}

/** An event store keeps the original time in the metadata. */
const RECORDED_AT_BYTES = ',"recordedAt":"2026-01-31T00:00:00.000Z"'.length;

/** Groups events that are adjacent in the log and in the same stream into one append. */
async function* runsOf(events: AsyncIterable<ComparableEvent>): AsyncGenerator<Run> {
  let run: { name: string; first: ComparableEvent; events: NewEvent[] } | undefined;
  let bytes = 0;
  for await (const comparable of events) {
    const event = newEventOf(comparable);
    const size = bytesOf(event) + RECORDED_AT_BYTES;
    const fits =
      run?.name === comparable.name && run.events.length < MAX_RUN_EVENTS && bytes + size <= MAX_APPEND_BYTES;
    if (run !== undefined && !fits) yield run;
    if (run === undefined || !fits) {
      run = { name: comparable.name, first: comparable, events: [] };
      bytes = 0;
    }
    run.events.push(event);
    bytes += size;
  }
  if (run !== undefined) yield run;
}

const appendRun = async ({ log, streams }: LedgerLog, { name, first, events }: Run): Promise<void> => {
  const { revision, id } = first.event;
  const stream = streams.withPrefix(name);
  try {
    await log.append(stream, events, revision === 0 ? 'no_stream' : revision - 1, APPEND_MS);
  } catch (error) {
    if (codeOf(error) !== 'stream_changed') throw error;
    throw fault(
      'copy_differs',
      `The event ${id} cannot have revision ${revision} in the stream ${stream} of the target: something else is writing to it.`,
    );
  }
};

const mustBeQuiet = async ({ log }: LedgerLog, found: Position): Promise<void> => {
  if ((await log.head())?.position === found) return;
  throw fault(
    'copy_source_grows',
    'The source is still being written to. Stop whatever writes to it and run the same command again: it resumes where it stopped. Or pass --follow-until-quiet.',
  );
};

/** The head once the source is quiet, or a new head as soon as there is one. */
const headAfter = async ({ log }: LedgerLog, found: Position, quietMs: number): Promise<Position> => {
  const end = monotonicMs() + quietMs;
  for (;;) {
    const position = (await log.head())?.position ?? found;
    if (position !== found || monotonicMs() >= end) return position;
    await pause(Math.min(RETRY_MS, quietMs));
  }
};

const mustDiffer = async (source: LedgerLog, target: LedgerLog): Promise<void> => {
  if ((await source.log.identity()) === (await target.log.identity()))
    throw fault(
      'copy_refused',
      'The source and the target are the same event log. Name two different logs; this command creates the target.',
    );
};

/** The head of the source. Refuses an empty source, and a growing one unless following. */
const firstHead = async (source: LedgerLog, { quietMs, follow }: CopyOptions): Promise<Position> => {
  const head = await source.log.head();
  if (head === undefined)
    throw fault('copy_refused', 'The source contains no events. Check its address and the stream prefix.');
  if (!follow) {
    await pause(quietMs);
    await mustBeQuiet(source, head.position);
  }
  return head.position;
};

/**
 * Retries while a log is out of reach, until there has been no progress for MAX_AWAY_MS. Comparing the logs again shows
 * whether an unanswered append was written.
 */
const whileUnreachable = async <T>(work: () => Promise<T>, progress: () => number = () => 0): Promise<T> => {
  let [reached, since] = [progress(), monotonicMs()];
  for (;;)
    try {
      return await work();
    } catch (error) {
      const code = codeOf(error);
      if (code !== 'log_unavailable' && code !== 'outcome_unknown') throw error;
      if (progress() > reached) [reached, since] = [progress(), monotonicMs()];
      if (monotonicMs() - since > MAX_AWAY_MS)
        throw fault(code, `${messageOf(error)} What was copied is safe: the same command resumes there.`);
      await pause(RETRY_MS);
    }
};

export const copyLog = async (from: LedgerLog, to: LedgerLog, options: CopyOptions): Promise<Copied> => {
  await whileUnreachable(() => mustDiffer(from, to));
  const [source, target] = [readingOf(from, 'source'), readingOf(to, 'target')];
  let upTo = await whileUnreachable(() => firstHead(from, options));
  let found: number | undefined;
  let appended = 0;

  const compareUp = async (total: number): Promise<'complete' | 'incomplete'> => {
    const onProgress = (done: number): void => options.onProgress({ step: 'comparing', done, total });
    const state = await compare(source, target, upTo, onProgress);
    found ??= source.count();
    return state;
  };

  /** Makes the target equal to the source up to `upTo`, and verifies it. */
  const copyUp = async (): Promise<void> => {
    const total = await from.log.distance(undefined, upTo);
    const state = await compareUp(total);
    if (state === 'complete') return;
    let done = source.count();
    for await (const run of runsOf(source.events(upTo))) {
      await appendRun(to, run);
      appended += run.events.length;
      done += run.events.length;
      options.onProgress({ step: 'copying', done, total });
    }
    if ((await compareUp(total)) === 'complete') return;
    throw notACopy(`it has only ${target.count()} events`, 'although it acknowledged all of them.');
  };

  for (let reached = ''; reached !== upTo;) {
    await whileUnreachable(copyUp, () => source.count() + appended);
    reached = upTo;
    const end = reached;
    if (options.follow) upTo = await whileUnreachable(() => headAfter(from, end, options.quietMs));
    else await whileUnreachable(() => mustBeQuiet(from, end));
  }
  await whileUnreachable(() => to.log.completeCopy());
  return {
    events: source.count(),
    copied: source.count() - (found ?? 0),
    foreign: { source: source.foreign(), target: target.foreign() },
    digest: { source: source.digest(), target: target.digest() },
  };
};
