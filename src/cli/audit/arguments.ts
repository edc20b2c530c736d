import { InvalidArgumentError } from 'commander';
import { mustBeComplete } from '../../app/app';
import { mustHoldData } from '../../app/data-folder';
import { storeOf } from '../../app/log-address';
import type { Moment } from '../../audit/tenant-history';
import { readConfiguration } from '../../configuration';
import { parseMoment } from '../../domain/moment';
import type { Position } from '../../event-log/event-log';
import type { LedgerLog } from '../../event-log/ledger-log';
import { fault } from '../../fault';
import { withLog } from '../log/arguments';
import type { Io } from '../io';

/** Opens the configured log read-only. It must be complete. */
export const withConfiguredLog = async <T>(
  io: Io,
  work: (ledgerLog: LedgerLog) => Promise<T>,
): Promise<T> => {
  const configuration = readConfiguration(io.env);
  // With an event store, nothing is read from the data folder.
  if (configuration.EVENTSTORE_URL === '') mustHoldData(configuration);
  return withLog(io, { role: 'source', address: 'configured' }, async (ledgerLog) => {
    mustBeComplete(await ledgerLog.log.format(), storeOf(configuration));
    return work(ledgerLog);
  });
};

const POSITION = /^[0-9]{16,20}$/;

export const positionArgument = (text: string): Position => {
  if (!POSITION.test(text))
    throw new InvalidArgumentError('It must be a position as events show it, for example 0000000000000042.');
  return text;
};

/** Positions are compared as text, so one from another kind of log would mean something else. */
export const mustBeOfLog = async ({ log }: LedgerLog, given: Position): Promise<void> => {
  const head = await log.head();
  if (head === undefined || head.position.length === given.length) return;
  throw fault(
    'position_unknown',
    `${given} is not a position of this log: its positions have ${head.position.length} digits, like ${head.position}.`,
  );
};

/** With a position beyond the end of the log, new events would be skipped until the log has grown past it. */
export const mustBeReached = async (ledgerLog: LedgerLog, given: Position): Promise<void> => {
  await mustBeOfLog(ledgerLog, given);
  const head = (await ledgerLog.log.head())?.position ?? '';
  if (given > head)
    throw fault(
      'position_unknown',
      `${given} is not a position of this log yet: ${head === '' ? 'it is empty' : `it ends at ${head}`}.`,
    );
};

export const momentOrPosition = (text: string): Moment => {
  const time = parseMoment(text);
  if (time !== undefined) return { time };
  if (POSITION.test(text)) return { position: text };
  throw new InvalidArgumentError(
    'It must be a time like 2031-01-31T12:00:00Z, or a position like 0000000000000042.',
  );
};
