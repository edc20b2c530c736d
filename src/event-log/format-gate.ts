import { beforeDeadline, monotonicMs } from '../async/clock';
import { FIRST_FORMAT } from '../domain/formats';
import { fault, type Fault } from '../fault';
import { formatOf } from './codec';
import { APPEND_MS, logFault, type EventLog, type NewEvent } from './event-log';

/** How long the known format is trusted. Not forever, because the log may be replaced. */
const TRUSTED_MS = 5_000;

const heldBack = ({ type, metadata }: NewEvent): Fault =>
  fault(
    'upgrade_unfinished',
    `This needs an event that older programs cannot read: ${type}, version ${String(metadata['version'])}. It is held back until the operator confirms with \`tenant-ledger log upgrade\` that no older program is running. Nothing was changed.`,
  );

const slow = () => logFault('log_unavailable', 'The event log did not report its format in time.');

/**
 * Wraps a log to refuse events that its format does not allow, since programs that cannot read them may be running. Reads
 * the format only for events that the first format does not have, and always before refusing, so every process notices
 * at once when the format is raised.
 */
export const formatGate = (log: EventLog, trustedMs = TRUSTED_MS): EventLog => {
  let [known, trustedUntil] = [FIRST_FORMAT, 0];

  const mustAllow = async (event: NewEvent, withinMs: number): Promise<void> => {
    if (formatOf(event) <= known && monotonicMs() < trustedUntil) return;
    known = await beforeDeadline(log.format(), monotonicMs() + withinMs, slow);
    trustedUntil = monotonicMs() + trustedMs;
    if (formatOf(event) > known) throw heldBack(event);
  };

  return {
    ...log,
    append: async (stream, events, expected, withinMs = APPEND_MS) => {
      const startedAt = monotonicMs();
      const newer = events.filter((event) => formatOf(event) > FIRST_FORMAT);
      for (const event of newer) await mustAllow(event, withinMs);
      const left = newer.length === 0 ? withinMs : Math.max(0, withinMs - (monotonicMs() - startedAt));
      return log.append(stream, events, expected, left);
    },
  };
};
