import { isoNow, yieldToEventLoop } from '../async/clock';
import type { Batch, LoggedEvent, Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/streams';
import { fault } from '../fault';
import type { ReadModels, ReadModelSet } from '../read-models/read-models';
import type { ComposedProjector } from '../../projections/projections';
import type { Folding } from './fold-batch';
import { projection, type Projection, type ProjectionOptions, type ReadAfter, type Step } from './project';
import { retryDue } from './parked-tenants';
import { readSetAside } from '../event-log/set-aside';

export interface ReplayDependencies extends LedgerLog {
  readonly readModels: ReadModels;
  readonly projector: ComposedProjector;
  readonly program: string;
  readonly abort?: AbortSignal;
}

type ReadLog = (after: Position | undefined) => AsyncIterable<Batch> | Iterable<Batch>;

/** With what the operator has set aside until now. */
export const readFolding = async (
  dependencies: Pick<ReplayDependencies, 'log' | 'streams' | 'projector' | 'program'>,
): Promise<Folding> => {
  const { streams, projector, program } = dependencies;
  return { streams, projector, program, now: isoNow, setAside: await readSetAside(dependencies) };
};

/** A read ends here, whatever the number of its events. */
const MAX_BYTES = 4_194_304;

/** Reads a log in pieces. What a read has returned beyond a piece is kept for the next one. */
export const readingInPieces = (read: ReadLog): ReadAfter => {
  let end: Position | undefined;
  let rest: readonly LoggedEvent[] = [];
  const readOn = async (after: Position | undefined, max: number): Promise<readonly LoggedEvent[]> => {
    const events: LoggedEvent[] = [];
    let bytes = 0;
    for await (const batch of read(after)) {
      events.push(...batch);
      for (const event of batch) bytes += event.bytes ?? 0;
      if (events.length >= max || bytes >= MAX_BYTES) break;
    }
    return events;
  };
  return async (after, max) => {
    const events = after === end && rest.length > 0 ? rest : await readOn(after, max);
    rest = events.slice(max);
    end = events.at(Math.min(max, events.length) - 1)?.position;
    return events.slice(0, max);
  };
};

/** Projects into the live set, whichever that is. Undefined: there is none. */
export const liveProjection = (
  dependencies: ReplayDependencies,
  options: ProjectionOptions,
): ((upTo?: Position) => Promise<Step | undefined>) => {
  const { log, readModels } = dependencies;
  let open: Projection | undefined;
  const openLive = async (): Promise<Projection | undefined> => {
    const live = await readModels.live();
    if (live === undefined) return undefined;
    const readAfter = readingInPieces((after) => log.readAll({ after }));
    return projection(live.set, readAfter, await readFolding(dependencies), options);
  };
  return async (upTo) => {
    const current = (open ??= await openLive());
    open = undefined;
    const step = await current?.step(upTo);
    if (step?.outcome !== 'superseded') open = current;
    return step;
  };
};

export interface ReplayOptions {
  /** Undefined: the whole log. */
  readonly read?: ReadLog;
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
    const between = async ({ events }: Step): Promise<void> => {
      if (events > 0) onEvents(events);
      await yieldToEventLoop();
      abort?.throwIfAborted();
    };
    const outcome = await projection(set, readingInPieces(read), folding, { between }).toEnd(upTo);
    if (outcome === 'superseded')
      throw fault('read_model_set_removed', `The set ${set.id} has a successor or was removed.`);
  };
