import { monotonicMs, pause } from '../clock';
import { codeOf, fault, messageOf } from '../fault';
import { compare, noCopy } from './copy-comparing';
import { newEventOf, reading, type Reading } from './copy-reading';
import { LARGEST_APPEND, type NewEvent, type Position } from './event-log';
import type { Own, Side } from './own-events';

/**
 * Copies one event log into another, between any two adapters.
 *
 * The target is at every moment a beginning of the source: events are appended one run after another, in the order of
 * the whole log, at the revisions that they have in the source. So a copy that was killed is taken up by reading both
 * logs side by side until the target ends. The same reading, over what was appended, is the verification.
 */

export interface CopyWish {
  /** A source that has not grown for so long is quiet. */
  readonly quietMs: number;
  /** Copy along until the source is quiet. Else one that grows is refused. */
  readonly follow: boolean;
  readonly tell: (step: CopyStep) => void;
}

export interface CopyStep {
  readonly step: 'comparing' | 'copying';
  readonly done: number;
  /** An estimate where counting would mean reading. */
  readonly total: number;
}

export interface Copied {
  /** In the log, before and now. */
  readonly events: number;
  /** By this run. */
  readonly copied: number;
  /** In streams that are none of ours. */
  readonly foreign: { readonly source: number; readonly target: number };
  /** Over stream, revision, id, type, data, metadata and recorded time of every event, in order. */
  readonly digest: { readonly source: string; readonly target: string };
}

/** Small enough for those who follow an EventStoreDB: it drops a live reader that lags behind a larger append. */
const RUN_EVENTS = 100;

/** A log that is out of reach for longer ends the copy; the next run goes on. */
const PATIENCE_MS = 30_000;
const AGAIN_MS = 500;
const APPEND_MS = 10_000;

interface Run {
  readonly role: string;
  readonly first: Own;
  readonly events: readonly NewEvent[];
}

/** Events that follow each other in the log and in one stream, as one append. */
async function* runsOf(events: AsyncIterable<Own>): AsyncGenerator<Run> {
  let run: { role: string; first: Own; events: NewEvent[] } | undefined;
  let bytes = 0;
  for await (const own of events) {
    const size = Buffer.byteLength(own.text.data);
    const fits = run?.role === own.role && run.events.length < RUN_EVENTS && bytes + size <= LARGEST_APPEND;
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

const appendRun = async ({ log, streams }: Side, { role, first, events }: Run): Promise<void> => {
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

const mustNotGrow = async ({ log }: Side, found: Position): Promise<void> => {
  if ((await log.head())?.position === found) return;
  throw fault(
    'copy_source_grows',
    'The source is still being written. Stop what writes there and run the same command again: it goes on from where it is. Or give --follow-until-quiet.',
  );
};

/** The head once the source is quiet, or the new one as soon as there is one. */
const headAfter = async ({ log }: Side, found: Position, quietMs: number): Promise<Position> => {
  const end = monotonicMs() + quietMs;
  for (;;) {
    const position = (await log.head())?.position ?? found;
    if (position !== found || monotonicMs() >= end) return position;
    await pause(Math.min(AGAIN_MS, quietMs));
  }
};

const mustDiffer = async (source: Side, target: Side): Promise<void> => {
  if ((await source.log.identity()) === (await target.log.identity()))
    throw fault(
      'copy_refused',
      'The source and the target are the same event log. Name two, and let the target be made by this command.',
    );
};

/** The source's head, unless there is none or it moves although it must not. */
const firstHead = async (source: Side, { quietMs, follow }: CopyWish): Promise<Position> => {
  const head = await source.log.head();
  if (head === undefined)
    throw fault('copy_refused', 'The source holds no events. Check its address and the stream prefix.');
  if (!follow) {
    await pause(quietMs);
    await mustNotGrow(source, head.position);
  }
  return head.position;
};

/** Appends to the target what the source has after the place up to which they are equal. */
const copyRest = async (
  source: Reading,
  to: Side,
  upTo: Position,
  tell: (events: number) => void,
): Promise<void> => {
  for await (const run of runsOf(source.events(upTo))) {
    await appendRun(to, run);
    tell(run.events.length);
  }
};

/**
 * Tries again while a log is out of reach: for as long as that brings anything, and a while longer. Whatever became of
 * an append that was not answered is seen when the two are compared again.
 */
const patiently = async <T>(work: () => Promise<T>, progress: () => number = () => 0): Promise<T> => {
  let [reached, since] = [progress(), monotonicMs()];
  for (;;)
    try {
      return await work();
    } catch (error) {
      const code = codeOf(error);
      if (code !== 'log_unavailable' && code !== 'outcome_unknown') throw error;
      if (progress() > reached) [reached, since] = [progress(), monotonicMs()];
      if (monotonicMs() - since > PATIENCE_MS)
        throw fault(code, `${messageOf(error)} What is copied is safe: the same command goes on from there.`);
      await pause(AGAIN_MS);
    }
};

export const copyLog = async (from: Side, to: Side, wish: CopyWish): Promise<Copied> => {
  await patiently(() => mustDiffer(from, to));
  const [source, target] = [reading(from, 'source'), reading(to, 'target')];
  let upTo = await patiently(() => firstHead(from, wish));
  let found: number | undefined;
  let appended = 0;

  const compareOn = async (total: number): Promise<'complete' | 'incomplete'> => {
    const tell = (done: number): void => wish.tell({ step: 'comparing', done, total });
    const state = await compare(source, target, upTo, tell);
    found ??= source.count();
    return state;
  };

  /** Makes the target equal to the source up to there, and sees that it is. */
  const bringUp = async (): Promise<void> => {
    const total = await from.log.distance(undefined, upTo);
    if ((await compareOn(total)) === 'complete') return;
    let done = source.count();
    await copyRest(source, to, upTo, (events) => {
      appended += events;
      done += events;
      wish.tell({ step: 'copying', done, total });
    });
    if ((await compareOn(total)) === 'complete') return;
    throw noCopy(`it has only ${target.count()} events`, 'although it has acknowledged all of them.');
  };

  for (let reached = ''; reached !== upTo;) {
    await patiently(bringUp, () => source.count() + appended);
    reached = upTo;
    const end = reached;
    if (wish.follow) upTo = await patiently(() => headAfter(from, end, wish.quietMs));
    else await patiently(() => mustNotGrow(from, end));
  }
  return {
    events: source.count(),
    copied: source.count() - (found ?? 0),
    foreign: { source: source.foreign(), target: target.foreign() },
    digest: { source: source.digest(), target: target.digest() },
  };
};
