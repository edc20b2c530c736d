import { beforeDeadline, monotonicMs } from '../clock';
import { FIRST_FORMAT } from '../domain/formats';
import { fault, type Fault } from '../fault';
import { formatOf } from './codec';
import { APPEND_MS, logFault, type EventLog, type NewEvent } from './event-log';

/** How long the format is believed without asking again: the log may be replaced by another one. */
const BELIEVED_MS = 5_000;

const heldBack = ({ type, metadata }: NewEvent): Fault =>
  fault(
    'upgrade_unfinished',
    `This needs an event that older programs cannot read: ${type}, version ${String(metadata['version'])}. It is held back until the operator says, with \`tenant-ledger log upgrade\`, that no older program runs any more. Nothing was changed.`,
  );

const slow = () => logFault('log_unavailable', 'The event log did not report its format in time.');

/**
 * The same log. It refuses events that its format does not allow, since programs may be running that cannot read them. The
 * log is asked for its format only for events that the first format does not have, and always before it refuses: when
 * the format is raised, every process notices at once.
 */
export const holdingBack = (log: EventLog, believedMs = BELIEVED_MS): EventLog => {
  let [known, believedUntil] = [FIRST_FORMAT, 0];

  const mustAllow = async (event: NewEvent, withinMs: number): Promise<void> => {
    if (formatOf(event) <= known && monotonicMs() < believedUntil) return;
    known = await beforeDeadline(log.format(), monotonicMs() + withinMs, slow);
    believedUntil = monotonicMs() + believedMs;
    if (formatOf(event) > known) throw heldBack(event);
  };

  return {
    ...log,
    append: async (stream, events, expected, withinMs = APPEND_MS) => {
      const began = monotonicMs();
      const newer = events.filter((event) => formatOf(event) > FIRST_FORMAT);
      for (const event of newer) await mustAllow(event, withinMs);
      const left = newer.length === 0 ? withinMs : Math.max(0, withinMs - (monotonicMs() - began));
      return log.append(stream, events, expected, left);
    },
  };
};
