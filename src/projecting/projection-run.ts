import type { Projector } from '../../projections/projector';
import { threadMs } from '../async/clock';
import type { Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import { codeOf, messageOf } from '../fault';
import { PARKED, type Target, type Write } from '../read-models/read-models';
import type { Batch } from './batch';
import type { Batches } from './consumer';
import { documentCache, type DocumentCache } from './document-cache';
import { foldBatch, type Folding } from './fold-batch';
import type { ParkedTenant } from './parked-tenants';
import { readSetAside } from './set-aside';

/** One projector projecting into one generation. */
export interface ProjectionRun extends Folding, LedgerLog {
  readonly generation: Target;
  /** Called after every commit with the visible position and whether any tenant is parked. */
  readonly moved: (position: Position, hasParked: boolean) => void;
  /** Called when a tenant was parked, or parked again by a retry. */
  readonly parked?: ((tenant: ParkedTenant) => void) | undefined;
}

/** Reads what the operator has set aside so far. */
export const runInto = async (
  { log, streams, program }: Pick<ProjectionRun, 'log' | 'streams' | 'program'>,
  projector: Projector,
  generation: Target,
  moved: ProjectionRun['moved'] = () => undefined,
): Promise<ProjectionRun> => ({
  projector,
  generation,
  log,
  streams,
  program,
  setAside: await readSetAside({ log, streams }),
  now: () => new Date().toISOString(),
  moved,
});

export const parkedBy = (writes: readonly Write[]): readonly ParkedTenant[] =>
  writes
    .filter(({ collection }) => collection === PARKED)
    .map(({ document }) => document as unknown as ParkedTenant);

/** How far a run has got: the number of its last commit, and the documents as of then. */
interface Progress {
  n: number;
  after: Position | undefined;
  cache: DocumentCache;
  /** Never reset: only a retry unparks a tenant, and the run starts over after that. */
  hasParked: boolean;
}

/**
 * Commits the changes of a batch, in halves if they are too large for one commit; a single event that is too large parks
 * its tenant. False: another process committed first, so the cache is stale.
 */
const commitBatch = async (
  run: ProjectionRun,
  at: Progress,
  batch: Batch,
  refused?: string,
): Promise<boolean> => {
  const last = batch.at(-1)?.logged;
  if (last === undefined) return true;
  const writes = await foldBatch(run, at.cache, batch, at.after, refused);
  try {
    const to = { position: last.position, eventId: last.id };
    if (!(await run.generation.commit(at.n, to, writes))) return false;
  } catch (error) {
    if (codeOf(error) !== 'commit_too_large' || refused !== undefined) throw error;
    at.cache = documentCache(run.generation);
    if (batch.length === 1) return commitBatch(run, at, batch, messageOf(error));
    const half = batch.length >> 1;
    return (
      (await commitBatch(run, at, batch.slice(0, half))) && (await commitBatch(run, at, batch.slice(half)))
    );
  }
  at.n += 1;
  at.after = last.position;
  const parked = parkedBy(writes);
  at.hasParked ||= parked.length > 0;
  run.moved(last.position, at.hasParked);
  for (const tenant of parked) run.parked?.(tenant);
  return true;
};

/** How a run shares its thread: it commits a batch in slices that take about this long, and awaits its turn before each. */
export interface Pace {
  readonly sliceMs: () => number;
  readonly turn: () => Promise<void>;
}

/** Smaller slices would cost more: a commit writes each page that it touches. */
const MIN_SLICE = 128;

/** Commits batches in slices as large as the last ones allow. */
const slicing = ({ sliceMs, turn }: Pace, commit: (slice: Batch) => Promise<boolean>) => {
  let size = MIN_SLICE;
  return async (batch: Batch): Promise<boolean> => {
    if (batch.length <= MIN_SLICE) return commit(batch);
    for (let from = 0; from < batch.length;) {
      await turn();
      const slice = batch.slice(from, from + size);
      const began = threadMs();
      if (!(await commit(slice))) return false;
      from += slice.length;
      const ms = Math.max(0.1, threadMs() - began);
      size = Math.max(MIN_SLICE, Math.min(2 * size, Math.round((slice.length * sliceMs()) / ms)));
    }
    return true;
  };
};

const projectFrom = async (
  run: ProjectionRun,
  batches: Batches,
  options: ProjectOptions,
): Promise<boolean> => {
  const { n, to } = await run.generation.control();
  const hasParked = (await run.generation.scan(PARKED, 1)).length > 0;
  const at: Progress = { n, after: to?.position, cache: documentCache(run.generation), hasParked };
  const commitWhole = (batch: Batch): Promise<boolean> => commitBatch(run, at, batch);
  const commit = options.pace === undefined ? commitWhole : slicing(options.pace, commitWhole);
  for await (const batch of batches(at.after, options.abort)) if (!(await commit(batch))) return false;
  return true;
};

export interface ProjectOptions {
  readonly abort?: AbortSignal;
  /** Undefined: it has its thread for itself. */
  readonly pace?: Pace;
}

/** Projects until there are no more batches. Starts over when another process has committed first. */
export const project = async (
  run: ProjectionRun,
  batches: Batches,
  options: ProjectOptions = {},
): Promise<void> => {
  while (!(await projectFrom(run, batches, options)));
};
