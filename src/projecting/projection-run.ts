import type { Projector } from '../../projections/projector';
import type { Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import { codeOf, messageOf } from '../fault';
import { PARKED, type Target, type Write } from '../read-models/read-models';
import type { Batch } from './batch';
import type { Batches } from './consumer';
import { documentCache, type DocumentCache } from './document-cache';
import { foldBatch, type Folding } from './fold-batch';
import { readSetAside } from './parking';

/** One projector that projects into one generation. */
export interface ProjectionRun extends Folding, LedgerLog {
  readonly generation: Target;
  /** Called after every commit with what is visible now, and whether any tenant is parked there. */
  readonly moved: (position: Position, hasParked: boolean) => void;
  /** Called when another tenant is parked, or one no longer is, and that is visible. */
  readonly parkedChanged?: () => void;
}

/** A run of a projector into a generation, with what the operator has set aside until now. */
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

const changesParked = (writes: readonly Write[]): boolean =>
  writes.some(({ collection }) => collection === PARKED);

/** How far a run is: the number of its last commit, and the documents as of that. */
interface Progress {
  n: number;
  after: Position | undefined;
  cache: DocumentCache;
  /** No batch frees a tenant: that takes another try, after which a run begins anew. */
  hasParked: boolean;
}

/**
 * Commits what a batch changes, in halves where that is too large for one commit; a single event that is too large parks
 * its tenant. False: another projector was faster, so the cache is out of date.
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
  const parks = changesParked(writes);
  at.hasParked ||= parks;
  run.moved(last.position, at.hasParked);
  if (parks) run.parkedChanged?.();
  return true;
};

const projectFrom = async (run: ProjectionRun, batches: Batches, abort?: AbortSignal): Promise<boolean> => {
  const { n, to } = await run.generation.control();
  const hasParked = (await run.generation.scan(PARKED, 1)).length > 0;
  const at: Progress = { n, after: to?.position, cache: documentCache(run.generation), hasParked };
  for await (const batch of batches(at.after, abort)) if (!(await commitBatch(run, at, batch))) return false;
  return true;
};

/** Projects batches until there are no more. Starts over by itself when another projector was faster. */
export const project = async (run: ProjectionRun, batches: Batches, abort?: AbortSignal): Promise<void> => {
  while (!(await projectFrom(run, batches, abort)));
};
