import { InvalidArgumentError } from 'commander';
import { mustHoldData } from '../../app/data-folder';
import { readConfiguration } from '../../configuration';
import type { Position } from '../../event-log/event-log';
import type { LedgerLog } from '../../event-log/ledger-log';
import { fault } from '../../fault';
import { withLog } from '../log-commands';
import type { Io } from '../io';

/** Opens the configured log read-only. */
export const withConfiguredLog = async <T>(
  io: Io,
  work: (ledgerLog: LedgerLog) => Promise<T>,
): Promise<T> => {
  const configuration = readConfiguration(io.env);
  // With an event store, nothing is read from the data folder.
  mustHoldData(configuration);
  return withLog(io, 'source', 'configured', work);
};

const POSITION = /^[0-9]{16,20}$/;

export const positionArgument = (text: string): Position => {
  if (!POSITION.test(text))
    throw new InvalidArgumentError('It must be a position as events show it, for example 0000000000000042.');
  return text;
};

/**
 * Positions are compared as text, so one from another kind of log would mean something else. With one beyond the end of
 * the log, new events would be skipped until the log has grown past it.
 */
export const mustBeReached = async ({ log }: LedgerLog, given: Position): Promise<void> => {
  const head = (await log.head())?.position ?? '';
  if (head !== '' && head.length !== given.length)
    throw fault(
      'wrong_usage',
      `${given} is not a position of this log: its positions have ${head.length} digits, like ${head}.`,
    );
  if (given > head)
    throw fault(
      'wrong_usage',
      `${given} is not a position of this log yet: ${head === '' ? 'it is empty' : `it ends at ${head}`}.`,
    );
};
