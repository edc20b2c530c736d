import type { Projector } from '../../projections/projector';
import type { EventLog, Position } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { PARKED, type Checkpoint, type Target, type Write } from '../read-models/read-models';
import type { Batch, Batches } from './consumer';
import { documentCache } from './document-cache';
import { foldBatch, type Folding } from './fold-batch';
import { readSetAside } from './parking';

/** One projector that projects into one generation. */
export interface ProjectionRun extends Folding {
  readonly generation: Target;
  readonly log: EventLog;
  readonly streams: Streams;
  /** Called after every commit with what is visible now. */
  readonly moved: (position: Position) => void;
  /** Called when another tenant is parked, or one no longer is, and that is visible. */
  readonly parkedChanged?: () => void;
}

/** A run of a projector into a generation, with what the operator has set aside until now. */
export const runInto = async (
  { log, streams, program }: Pick<ProjectionRun, 'log' | 'streams' | 'program'>,
  projector: Projector,
  generation: Target,
  moved: (position: Position) => void = () => undefined,
): Promise<ProjectionRun> => ({
  projector,
  generation,
  log,
  streams,
  program,
  setAside: await readSetAside(log, streams),
  now: () => new Date().toISOString(),
  moved,
});

const checkpointOf = (batch: Batch): Checkpoint | undefined => {
  const last = batch.at(-1)?.logged;
  return last === undefined ? undefined : { position: last.position, eventId: last.id };
};

const changesParked = (writes: readonly Write[]): boolean =>
  writes.some(({ collection }) => collection === PARKED);

/** False: another projector was faster, so what is cached is out of date. */
const projectFrom = async (run: ProjectionRun, batches: Batches, abort?: AbortSignal): Promise<boolean> => {
  const { generation } = run;
  const control = await generation.control();
  const cache = documentCache(generation);
  let { n } = control;
  let after = control.to?.position;
  for await (const batch of batches(after, abort)) {
    const to = checkpointOf(batch);
    if (to === undefined) continue;
    const writes = await foldBatch(run, cache, batch, after);
    if (!(await generation.commit(n, to, writes))) return false;
    n += 1;
    after = to.position;
    run.moved(to.position);
    if (changesParked(writes)) run.parkedChanged?.();
  }
  return true;
};

/** Projects batches until there are no more. Starts over by itself when another projector was faster. */
export const project = async (run: ProjectionRun, batches: Batches, abort?: AbortSignal): Promise<void> => {
  while (!(await projectFrom(run, batches, abort)));
};
