import { isoNow, yieldToEventLoop } from '../async/clock';
import type { Batch, Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import { fault } from '../fault';
import type { ReadModels, ReadModelSet } from '../read-models/read-models';
import type { ComposedProjector } from './compose';
import type { Folding } from './fold-batch';
import { logReader } from './log-reader';
import { projection } from './project';
import { retryDue } from './retry-parked';
import { readSetAside } from './set-aside';

export interface ReplayDependencies extends LedgerLog {
  readonly readModels: ReadModels;
  readonly projector: ComposedProjector;
  readonly program: string;
  readonly abort?: AbortSignal;
}

type FoldingDependencies = Pick<ReplayDependencies, 'log' | 'streams' | 'projector' | 'program'>;

/** With what the operator has set aside until now. */
export const readFolding = async (dependencies: FoldingDependencies): Promise<Folding> => {
  const { streams, projector, program } = dependencies;
  return { streams, projector, program, now: isoNow, setAside: await readSetAside(dependencies) };
};

export interface ReplayOptions {
  /** Undefined: the whole log. */
  readonly read?: (after: Position | undefined) => AsyncIterable<Batch>;
  readonly onEvents?: (events: number) => void;
}

/**
 * Projects the log into a set, in large commits, up to a position; first retries parked tenants whose events were set
 * aside since. Rejects with `read_model_set_removed` if the set has a successor or is gone.
 */
export const replayInto =
  (dependencies: ReplayDependencies, set: ReadModelSet, options: ReplayOptions = {}) =>
  async (upTo: Position): Promise<void> => {
    const { log, streams, abort } = dependencies;
    const { read = (after) => log.readAll({ after }), onEvents = () => undefined } = options;
    const folding = await readFolding(dependencies);
    await retryDue({ log, streams, set, folding });
    const between = async ({ events }: { readonly events: number }): Promise<void> => {
      if (events > 0) onEvents(events);
      await yieldToEventLoop();
      abort?.throwIfAborted();
    };
    const outcome = await projection(set, logReader(read), folding, { between }).toEnd(upTo);
    if (outcome === 'superseded')
      throw fault('read_model_set_removed', `The set ${set.id} has a successor or was removed.`);
  };
