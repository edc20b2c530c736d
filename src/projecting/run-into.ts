import type { Projector } from '../../projections/projector';
import type { EventLog, Position } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import type { Generation } from '../read-models/read-models';
import { readSetAside } from './parking';
import type { ProjectionRun } from './projection-run';

/** Nobody looks at what is being replayed but the progress bar. */
const REPLAY_MS = 1_000;

/** A run of a projector into a generation, with what the operator has set aside until now. */
export const runInto = async (
  { log, streams, program }: { log: EventLog; streams: Streams; program: string },
  projector: Projector,
  generation: Generation,
  moved: (position: Position) => void = () => undefined,
  showWithinMs = REPLAY_MS,
): Promise<ProjectionRun> => ({
  projector,
  generation,
  log,
  streams,
  program,
  setAside: await readSetAside(log, streams),
  now: () => new Date().toISOString(),
  moved,
  showWithinMs,
});
