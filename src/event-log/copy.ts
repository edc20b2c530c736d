import { monotonicMs, pause } from '../clock';
import { codeOf, fault, messageOf, type Fault } from '../fault';
import { isJsonObject } from '../json';
import { MAX_APPEND_BYTES, type NewEvent, type Position } from './event-log';
import { gapBefore } from './gap';
import type { LedgerLog } from './ledger-log';
import { differenceOf, ownOf, runningDigest, type Own } from './own-events';

/**
 * Copies one event log into another, between any two adapters.
 *
 * At every moment the target equals the beginning of the source: events are appended one run after another, in the order
 * of the whole log, at the revisions that they have in the source. So a copy that was killed is resumed by reading both
 * logs side by side until the target ends. The same comparison of what was appended is the verification.
 */

interface CopyOptions {
  /** A source that has not grown for this long is quiet. */
  readonly quietMs: number;
  /** Keep copying until the source is quiet. Otherwise a source that grows is refused. */
  readonly follow: boolean;
  readonly onProgress: (step: CopyStep) => void;
}

export interface CopyStep {
  readonly step: 'comparing' | 'copying';
  readonly done: number;
  /** An estimate where counting would mean reading. */
  readonly total: number;
}

export interface Copied {
  /** In the log, copied now or before. */
  readonly events: number;
  /** By this run. */
  readonly copied: number;
  /** Events in other streams. */
  readonly foreign: { readonly source: number; readonly target: number };
  /** Over stream, revision, id, type, data, metadata and recorded time of every event, in order. */
  readonly digest: { readonly source: string; readonly target: string };
}

/** Small enough for followers of an EventStoreDB, which drops a live reader that lags behind a larger append. */
const RUN_EVENTS = 100;

/** A log that is out of reach for longer ends the copy; the next run resumes it. */
const AWAY_MS = 30_000;
const AGAIN_MS = 500;
const APPEND_MS = 10_000;

const nameOf = ({ event }: Own): string =>
  `${event.id} (${event.type}, revision ${event.revision} of ${event.stream})`;

/** One of the two logs, and how far it was read and found equal. */
interface Reading {
  /** What comes after what was taken, up to a position. In a source, it throws where events are missing. */
  events(upTo?: Position): AsyncGenerator<Own, undefined>;
  take(own: Own): void;
  count(): number;
  foreign(): number;
  digest(): string;
}

const notCopied = (own: Own, reason: string): Fault =>
  fault('copy_refused', `The event ${nameOf(own)} cannot be copied: ${reason}`);

const readingOf = ({ log, streams }: LedgerLog, role: 'source' | 'target'): Reading => {
  const digest = runningDigest();
  /** The last revision of each stream in what was taken. */
  const revisions = new Map<string, number>();
  let after: Position | undefined;
  let count = 0;
  let foreign = 0;
  let lastForeign = '';

  const checked = (own: Own, reached: Map<string, number>): Own => {
    const gap = gapBefore(own.event, reached.get(own.role) ?? -1);
    if (role === 'source' && gap !== undefined) throw notCopied(own, gap);
    reached.set(own.role, own.event.revision);
    return own;
  };

  async function* events(upTo?: Position): AsyncGenerator<Own, undefined> {
    const reached = new Map(revisions);
    for await (const batch of log.readAll({ after }))
      for (const event of batch) {
        if (upTo !== undefined && event.position > upTo) return;
        const name = streams.roleOf(event.stream);
        if (name !== undefined) yield checked(ownOf(event, name), reached);
        else if (event.position > lastForeign) {
          // The same range may be read twice.
          lastForeign = event.position;
          foreign += 1;
        }
      }
  }

  return {
    events,
    take: (own) => {
      digest.add(own);
      revisions.set(own.role, own.event.revision);
      after = own.event.position;
      count += 1;
    },
    count: () => count,
    foreign: () => foreign,
    digest: digest.soFar,
  };
};

const noCopy = (why: string, here: string): Fault =>
  fault('copy_differs', `The target is not a copy of this source: ${why} ${here}`);

/** Reads both on from where they were found equal: is the target complete? Throws at the first difference. */
const compare = async (
  source: Reading,
  target: Reading,
  upTo: Position,
  onProgress: (done: number) => void,
): Promise<'complete' | 'incomplete'> => {
  const theirs = target.events()[Symbol.asyncIterator]();
  const number = (): string => `event number ${source.count() + 1}`;
  try {
    for await (const ours of source.events(upTo)) {
      const next = await theirs.next();
      if (next.done === true) return 'incomplete';
      const difference = differenceOf(ours, next.value);
      if (difference !== undefined)
        throw noCopy(
          `${number()} is ${nameOf(next.value)}, where the source has ${nameOf(ours)}.`,
          `They differ in: ${difference}.`,
        );
      source.take(ours);
      target.take(next.value);
      onProgress(source.count());
    }
    const more = await theirs.next();
    if (more.done !== true)
      throw noCopy(
        `it also holds ${nameOf(more.value)} as ${number()},`,
        'which the source does not have there.',
      );
    return 'complete';
  } finally {
    await theirs.return?.(undefined);
  }
};

/** JSON has numbers that JavaScript reads as infinite and would write as null. */
const holdsInfinity = (value: unknown): boolean => {
  if (typeof value === 'number') return !Number.isFinite(value);
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsInfinity);
};

/** What the target would not give back exactly as it is in the source is not copied at all. */
const reasonAgainst = ({ event: { data, metadata = {} }, text }: Own): string | undefined => {
  // A log may give a bare string for data that is called JSON but is not.
  if (Buffer.isBuffer(data) || typeof data === 'string' || data === undefined) return 'its data is not JSON';
  if (!isJsonObject(metadata)) return 'its metadata is not a JSON object';
  if (Object.hasOwn(metadata, 'recordedAt'))
    return 'its metadata has a member recordedAt, which the log keeps for itself';
  if ((text.data + text.metadata).includes('null') && (holdsInfinity(data) || holdsInfinity(metadata)))
    return 'it holds a number that is too large';
  return undefined;
};

const newEventOf = (own: Own): NewEvent => {
  const { id, type, data, metadata = {}, recordedAt } = own.event;
  const reason = reasonAgainst(own);
  if (reason !== undefined) throw notCopied(own, `${reason}.`);
  return {
    id,
    type,
    data: data as NewEvent['data'],
    metadata: metadata as NewEvent['metadata'],
    recordedAt,
  };
};

interface Run {
  readonly role: string;
  readonly first: Own;
  readonly events: readonly NewEvent[];
}

/** Groups events that are adjacent in the log and in the same stream into one append. */
async function* runsOf(events: AsyncIterable<Own>): AsyncGenerator<Run> {
  let run: { role: string; first: Own; events: NewEvent[] } | undefined;
  let bytes = 0;
  for await (const own of events) {
    const size = Buffer.byteLength(own.text.data);
    const fits = run?.role === own.role && run.events.length < RUN_EVENTS && bytes + size <= MAX_APPEND_BYTES;
    if (run !== undefined && !fits) yield run;
    if (run === undefined || !fits) {
      run = { role: own.role, first: own, events: [] };
      bytes = 0;
    }
    run.events.push(newEventOf(own));
    bytes += size;
  }
  if (run !== undefined) yield run;
}

const appendRun = async ({ log, streams }: LedgerLog, { role, first, events }: Run): Promise<void> => {
  const { revision, id } = first.event;
  const stream = streams.withRole(role);
  try {
    await log.append(stream, events, revision === 0 ? 'no_stream' : revision - 1, APPEND_MS);
  } catch (error) {
    if (codeOf(error) !== 'stream_changed') throw error;
    throw fault(
      'copy_differs',
      `The event ${id} cannot have revision ${revision} in the stream ${stream} of the target: something else writes there.`,
    );
  }
};

const mustBeQuiet = async ({ log }: LedgerLog, found: Position): Promise<void> => {
  if ((await log.head())?.position === found) return;
  throw fault(
    'copy_source_grows',
    'The source is still being written. Stop what writes there and run the same command again: it goes on from where it is. Or give --follow-until-quiet.',
  );
};

/** The head once the source is quiet, or a new head as soon as there is one. */
const headAfter = async ({ log }: LedgerLog, found: Position, quietMs: number): Promise<Position> => {
  const end = monotonicMs() + quietMs;
  for (;;) {
    const position = (await log.head())?.position ?? found;
    if (position !== found || monotonicMs() >= end) return position;
    await pause(Math.min(AGAIN_MS, quietMs));
  }
};

const mustDiffer = async (source: LedgerLog, target: LedgerLog): Promise<void> => {
  if ((await source.log.identity()) === (await target.log.identity()))
    throw fault(
      'copy_refused',
      'The source and the target are the same event log. Name two, and let the target be made by this command.',
    );
};

/** The source's head, unless there is none or it moves when it must not. */
const firstHead = async (source: LedgerLog, { quietMs, follow }: CopyOptions): Promise<Position> => {
  const head = await source.log.head();
  if (head === undefined)
    throw fault('copy_refused', 'The source holds no events. Check its address and the stream prefix.');
  if (!follow) {
    await pause(quietMs);
    await mustBeQuiet(source, head.position);
  }
  return head.position;
};

/**
 * Retries while a log is out of reach: as long as there is progress, and a while longer. What became of an append that was
 * not answered shows when the two logs are compared again.
 */
const untilReached = async <T>(work: () => Promise<T>, progress: () => number = () => 0): Promise<T> => {
  let [reached, since] = [progress(), monotonicMs()];
  for (;;)
    try {
      return await work();
    } catch (error) {
      const code = codeOf(error);
      if (code !== 'log_unavailable' && code !== 'outcome_unknown') throw error;
      if (progress() > reached) [reached, since] = [progress(), monotonicMs()];
      if (monotonicMs() - since > AWAY_MS)
        throw fault(code, `${messageOf(error)} What is copied is safe: the same command goes on from there.`);
      await pause(AGAIN_MS);
    }
};

export const copyLog = async (from: LedgerLog, to: LedgerLog, options: CopyOptions): Promise<Copied> => {
  await untilReached(() => mustDiffer(from, to));
  const [source, target] = [readingOf(from, 'source'), readingOf(to, 'target')];
  let upTo = await untilReached(() => firstHead(from, options));
  let found: number | undefined;
  let appended = 0;

  const compareOn = async (total: number): Promise<'complete' | 'incomplete'> => {
    const onProgress = (done: number): void => options.onProgress({ step: 'comparing', done, total });
    const state = await compare(source, target, upTo, onProgress);
    found ??= source.count();
    return state;
  };

  /** Makes the target equal to the source up to there, and verifies it. */
  const bringUp = async (): Promise<void> => {
    const total = await from.log.distance(undefined, upTo);
    // Read after the head: whatever comes before it is allowed by this format.
    await to.log.raiseFormat(await from.log.format());
    if ((await compareOn(total)) === 'complete') return;
    let done = source.count();
    for await (const run of runsOf(source.events(upTo))) {
      await appendRun(to, run);
      appended += run.events.length;
      done += run.events.length;
      options.onProgress({ step: 'copying', done, total });
    }
    if ((await compareOn(total)) === 'complete') return;
    throw noCopy(`it has only ${target.count()} events`, 'although it has acknowledged all of them.');
  };

  for (let reached = ''; reached !== upTo;) {
    await untilReached(bringUp, () => source.count() + appended);
    reached = upTo;
    const end = reached;
    if (options.follow) upTo = await untilReached(() => headAfter(from, end, options.quietMs));
    else await untilReached(() => mustBeQuiet(from, end));
  }
  return {
    events: source.count(),
    copied: source.count() - (found ?? 0),
    foreign: { source: source.foreign(), target: target.foreign() },
    digest: { source: source.digest(), target: target.digest() },
  };
};
