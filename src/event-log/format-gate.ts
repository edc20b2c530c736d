import { beforeDeadline, monotonicMs } from '../async/clock';
import { FIRST_FORMAT } from '../domain/formats';
import { fault, type Fault } from '../fault';
import { formatOf } from './codec';
import { APPEND_MS, logFault, type EventLog, type NewEvent } from './event-log';

const heldBack = ({ type, metadata }: NewEvent): Fault =>
  fault(
    'upgrade_unfinished',
    `This needs an event that older programs cannot read: ${type}, version ${String(metadata['version'])}. It is held back until the operator confirms with \`tenant-ledger log upgrade\` that no older program is running. Nothing was changed.`,
  );

const slow = () => logFault('log_unavailable', 'The event log did not report its format in time.');

/**
 * Wraps a log to refuse events that its format does not allow, since programs that cannot read them may be running. Reads
 * the format only for events that the first format does not have, and always before refusing, so every process notices
 * at once when the format is raised. It is never lowered, and a process whose log is replaced ends (`LogWatch`).
 */
export const formatGate = (log: EventLog): EventLog => {
  let known = FIRST_FORMAT;
  return {
    ...log,
    append: async (stream, events, expected, withinMs = APPEND_MS) => {
      const notAllowed = (): NewEvent | undefined => events.find((event) => formatOf(event) > known);
      if (notAllowed() === undefined) return log.append(stream, events, expected, withinMs);
      const end = monotonicMs() + withinMs;
      known = await beforeDeadline(log.format(), end, slow);
      const refused = notAllowed();
      if (refused !== undefined) throw heldBack(refused);
      return log.append(stream, events, expected, Math.max(0, end - monotonicMs()));
    },
  };
};
