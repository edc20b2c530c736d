import type { Projector } from '../../projections/projector';
import { monotonicMs } from '../clock';
import type { EventLog, Position } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import {
  PARKED,
  type Checkpoint,
  type Control,
  type Generation,
  type Write,
} from '../read-models/read-models';
import { BATCH_EVENTS, type FedBatch } from './pages';
import type { SetAside } from './parking';
import { foldBatch, type FoldContext } from './fold-batch';
import { workspace } from './workspace';

/** One projector filling one generation. */
export interface ProjectionRun {
  readonly projector: Projector;
  readonly generation: Generation;
  readonly log: EventLog;
  readonly streams: Streams;
  /** The program's version: a newer one tries parked tenants again. */
  readonly program: string;
  readonly now: () => string;
  /** What the operator has set aside, as of the start of the run. */
  readonly setAside: SetAside;
  /** Called with what is visible now, whenever that has moved. */
  readonly moved: (position: Position) => void;
  /** Called when another tenant is parked, or one no more, and that is visible. */
  readonly parkedChanged?: () => void;
  /** While more is at hand, what is new may stay invisible for so long: that makes it cheaper. 0: nothing may. */
  readonly showWithinMs: number;
}

export const foldContextOf = ({ now, program, projector, setAside }: ProjectionRun): FoldContext => ({
  now: now(),
  program,
  isSetAside: (eventId) => setAside.event(projector.name, eventId),
  isGapAccepted: (eventId) => setAside.gapBefore(projector.name, eventId),
});

const checkpointOf = (batch: FedBatch): Checkpoint | undefined => {
  const last = batch.at(-1)?.logged;
  return last === undefined ? undefined : { position: last.position, eventId: last.id };
};

interface Folded {
  readonly to: Checkpoint;
  readonly writes: readonly Write[];
  /** It was cut: there is more, or will be soon. */
  readonly full: boolean;
  /** It has been in the log for a while: nobody waits for it just now. */
  readonly isOld: boolean;
}

const OLD_MS = 5_000;

/** Only how long it may stay invisible depends on it, so clocks that disagree do no harm. */
const isOld = (batch: FedBatch, now: string): boolean =>
  Date.parse(now) - Date.parse(batch.at(-1)?.logged.recordedAt ?? now) > OLD_MS;

/** The batches of a run as what they do to the documents, one after the other, on top of a control state. */
async function* folded(
  run: ProjectionRun,
  { n, to }: Control,
  events: AsyncIterable<FedBatch>,
): AsyncGenerator<Folded> {
  const space = workspace(run.generation, n === 0);
  let after = to?.position;
  for await (const batch of events) {
    const end = checkpointOf(batch);
    if (end === undefined) continue;
    const writes = await foldBatch(run.projector, space, batch, after, foldContextOf(run));
    yield { to: end, writes, full: batch.length >= BATCH_EVENTS, isOld: isOld(batch, run.now()) };
    after = end.position;
  }
}

/** So many documents may wait to be shown while more comes in. */
const MOST_PUT_OFF = 65_536;
const OLD_PUT_OFF_MS = 1_000;
const AT_HAND_MS = 10;

/** Whatever becomes of it, it is at hand. */
const isAtHand = (next: Promise<unknown>): Promise<boolean> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), AT_HAND_MS);
    const come = (): void => {
      clearTimeout(timer);
      resolve(true);
    };
    next.then(come, come);
  });

/** Says of each commit whether it may be put off. */
const puttingOff = (longestMs: number) => {
  let waiting = 0;
  let since = monotonicMs();
  return ({ full, writes, isOld: nobodyWaits }: Folded): boolean => {
    waiting += writes.length;
    const mostMs = nobodyWaits && longestMs > 0 ? OLD_PUT_OFF_MS : longestMs;
    if (full && waiting < MOST_PUT_OFF && monotonicMs() - since < mostMs) return true;
    waiting = 0;
    since = monotonicMs();
    return false;
  };
};

/**
 * Commits what is folded, and lets the next batch be read and folded meanwhile; while more is at hand, commits are put
 * off. False: somebody else was faster.
 */
const commitAll = async (run: ProjectionRun, start: Control, batches: AsyncIterator<Folded>) => {
  const { generation } = run;
  const mayPutOff = puttingOff(run.showWithinMs);
  let { n } = start;
  let unseen: Position | undefined;
  let isParkedUnseen = false;
  const show = async (): Promise<void> => {
    if (unseen === undefined) return;
    await generation.settle();
    run.moved(unseen);
    if (isParkedUnseen) run.parkedChanged?.();
    unseen = undefined;
    isParkedUnseen = false;
  };
  let next = batches.next();
  for (let batch = await next; batch.done !== true; batch = await next) {
    const { to, writes } = batch.value;
    const isPutOff = mayPutOff(batch.value);
    const committing = generation.commit(n, to, writes, isPutOff);
    next = batches.next();
    next.catch(() => undefined);
    if (!(await committing)) return false;
    n += 1;
    unseen = to.position;
    isParkedUnseen ||= writes.some(({ collection }) => collection === PARKED);
    if (!isPutOff || !(await isAtHand(next))) await show();
  }
  await show();
  return true;
};

/** The events after a position. It ends when the signal says so, if not before. */
export type EventsAfter = (after: Position | undefined, signal: AbortSignal) => AsyncIterable<FedBatch>;

const projectFrom = async (run: ProjectionRun, events: EventsAfter, ending?: AbortSignal) => {
  const control = await run.generation.control();
  const over = new AbortController();
  const end = (): void => over.abort();
  ending?.addEventListener('abort', end);
  if (ending?.aborted === true) end();
  const batches = folded(run, control, events(control.to?.position, over.signal));
  try {
    return await commitAll(run, control, batches);
  } finally {
    end();
    ending?.removeEventListener('abort', end);
    // What was put off must not stay locked; whoever goes on finds out from the control state.
    await run.generation.settle().catch(() => undefined);
    // Not awaited: it may be folding what nobody wants any more.
    void batches.return(undefined).catch(() => undefined);
  }
};

/** Projects what comes out of `events` until it ends. Starts over by itself when another projector was faster. */
export const project = async (
  run: ProjectionRun,
  events: EventsAfter,
  ending?: AbortSignal,
): Promise<void> => {
  while (!(await projectFrom(run, events, ending)));
};
