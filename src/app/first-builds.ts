import { projections } from '../../projections/projections';
import type { Projector } from '../../projections/projector';
import { pause } from '../async/clock';
import type { Configuration } from '../configuration';
import { codeOf } from '../fault';
import { rebuildLease } from '../projecting/lease';
import { liveOf } from '../read-models/read-models';
import type { App } from './app';
import { rebuildInWorkers } from './replay-workers';

/** Fewer events are projected about as fast as a thread starts. */
const MIN_EVENTS = 10_000;

/** How often to look whether another process has finished. */
const LOOK_MS = 500;

interface FirstBuildsOptions {
  readonly onProgress: (percent: number) => void;
  readonly onError: (what: string, error: unknown) => void;
  readonly abort: AbortSignal;
}

const missingIn = async ({ replay: { readModels } }: App): Promise<readonly Projector[]> => {
  const state = await readModels.state();
  return projections.filter((projector) => liveOf(state, projector) === undefined);
};

const isLong = async ({ log }: App): Promise<boolean> => {
  const head = await log.head();
  return head !== undefined && (await log.distance(undefined, head.position)) >= MIN_EVENTS;
};

/**
 * Builds read models that do not exist yet, as after an upgrade, the way a rebuild does: fast, on all processors,
 * and without delaying appends. Waits for another process that already does. What cannot be built like this is left to
 * whoever projects.
 */
export const buildMissing = async (
  app: App,
  configuration: Configuration,
  { onProgress, onError, abort }: FirstBuildsOptions,
): Promise<void> => {
  const percents = new Map<string, number>();
  while (!abort.aborted) {
    const missing = await missingIn(app);
    if (missing.length === 0 || !(await isLong(app))) return;
    const outcomes = await rebuildInWorkers(
      configuration,
      missing,
      { acceptDifferences: true },
      {
        onError,
        onStep: (name, step) => {
          if (step.step !== 'building') return;
          percents.set(name, Math.floor((100 * step.done) / step.total));
          onProgress(Math.min(...percents.values()));
        },
        abort,
      },
    );
    if (abort.aborted) return;
    const failures = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
    const refused = failures.filter((reason) => codeOf(reason) === 'rebuild_running');
    for (const reason of failures)
      if (!refused.includes(reason)) onError('A read model could not be built in advance.', reason);
    // A lease is also refused if it cannot be written, as on a full disk: then nobody holds it.
    const { leases } = await app.replay.readModels.state();
    const isElsewhere = missing.some(({ name }) => leases.has(rebuildLease(name)));
    if (refused.length === 0 || !isElsewhere) return;
    await pause(LOOK_MS, abort);
  }
};
