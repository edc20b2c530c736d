import type { Projector } from '../../projections/projector';
import { monotonicMs } from '../clock';
import type { EventLog, Position } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import {
  PARKED,
  type Checkpoint,
  type Control,
  type Generation,
  type Scanned,
  type Write,
} from '../read-models/read-models';
import { BATCH_EVENTS, fedBatch, type FedBatch } from './pages';
import {
  foldBatch,
  foldWaiting,
  parkedKey,
  type ParkedTenant,
  type Retried,
  type Surroundings,
} from './fold-batch';
import { workspace } from './workspace';

/** What the operator has set aside, per projection: read before projecting, obeyed by every rebuild and verify. */
export interface SetAside {
  /** This event is passed over. */
  readonly event: (projection: string, eventId: string) => boolean;
  /** This event is applied although events before it are missing. */
  readonly gapBefore: (projection: string, eventId: string) => boolean;
}

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

const around = ({ now, program, projector, setAside }: ProjectionRun): Surroundings => ({
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
    const writes = await foldBatch(run.projector, space, batch, after, around(run));
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

const SCAN_PAGE = 500;

export async function* parkedTenants(generation: Generation): AsyncGenerator<ParkedTenant> {
  let after: { tenantId: string; key: string } | undefined;
  do {
    const page: readonly Scanned[] = await generation.scan(PARKED, SCAN_PAGE, after);
    for (const row of page) yield row.document as unknown as ParkedTenant;
    after = page.at(-1);
  } while (after !== undefined);
}

/** The waiting events of a tenant that the generation has already passed. */
async function* waitingEvents(run: ProjectionRun, tenant: ParkedTenant, upTo: Position) {
  for await (const batch of run.log.readTenant(tenant.tenant_id, { after: tenant.after })) {
    const due = batch.filter((event) => event.position <= upTo);
    yield { batch: fedBatch(due, run.streams), last: due.length < batch.length };
    if (due.length < batch.length) return;
  }
  yield { batch: [], last: true };
}

/**
 * The parked document is read after the control state, as all documents are: another projector may have freed the tenant
 * since it was listed, and its events must not be taken twice.
 */
const retryOnce = async (run: ProjectionRun, tenantId: string): Promise<Retried['outcome'] | 'overtaken'> => {
  const { to, ...control } = await run.generation.control();
  const [parked] = await run.generation.load([parkedKey(tenantId)]);
  if (parked === undefined) return 'free';
  let { n } = control;
  let tenant = parked as unknown as ParkedTenant;
  for await (const { batch, last } of waitingEvents(run, tenant, to?.position ?? '')) {
    const retried = await foldWaiting(run.projector, run.generation, tenant, batch, last, around(run));
    if (!(await run.generation.commit(n, undefined, retried.writes))) return 'overtaken';
    if (retried.outcome !== 'more') {
      run.parkedChanged?.();
      return retried.outcome;
    }
    n += 1;
    tenant = retried.tenant;
  }
  return 'more';
};

/** Tries one parked tenant again. Gives back whether it is parked no more. */
export const retryParked = async (run: ProjectionRun, tenantId: string): Promise<boolean> => {
  let outcome = await retryOnce(run, tenantId);
  while (outcome === 'overtaken') outcome = await retryOnce(run, tenantId);
  return outcome === 'free';
};

/**
 * A newer program may be able to read what an older one could not, an event may have been set aside since then, and the
 * operator may ask for another try of one tenant or of all.
 */
export const retryDue = async (
  run: ProjectionRun,
  isAskedFor: (tenantId: string) => boolean = () => false,
): Promise<void> => {
  const { event, gapBefore } = run.setAside;
  const isSetAside = ({ cause, event_id }: ParkedTenant): boolean =>
    (cause === 'missing_events' ? gapBefore : event)(run.projector.name, event_id);
  const isDue = (tenant: ParkedTenant): boolean =>
    isAskedFor(tenant.tenant_id) || tenant.program !== run.program || isSetAside(tenant);
  for await (const tenant of parkedTenants(run.generation))
    if (isDue(tenant)) await retryParked(run, tenant.tenant_id);
};
