import { InvalidArgumentError, Option } from 'commander';
import { openLog } from '../../app/adapters';
import { readConfiguration, settings, type Configuration } from '../../configuration';
import type { LedgerLog } from '../../event-log/ledger-log';
import { streamNames } from '../../event-log/streams';
import { codeOf, fault, moreOf } from '../../fault';
import { warn } from '../operator-session';
import type { Io } from '../io';

export const ADDRESSES = `An address: the path of a data folder, sqlite:PATH, esdb://HOST:PORT for EventStoreDB and KurrentDB, or the word
configured for the log that the environment names (EVENTSTORE_URL, else DATA_DIR).`;

const prefix = (text: string): string => {
  if (settings.STREAM_PREFIX.read(text) === undefined)
    throw new InvalidArgumentError('It may have at most 64 letters, digits, dots, underscores and hyphens.');
  return text;
};

export const prefixOption = (name: string): Option =>
  new Option(`${name} <prefix>`, 'the stream prefix there (default: STREAM_PREFIX)').argParser(prefix);

/** `configured` keeps a password in the environment: arguments are visible to every user of the machine. */
const addressIn = ({ EVENTSTORE_URL, DATA_DIR }: Configuration, text: string): string =>
  text === 'configured' ? EVENTSTORE_URL || DATA_DIR : text;

/** Rewords the fault of a log with another prefix to name the option of this command. */
const namingOption =
  (option: string, given: string) =>
  (error: unknown): never => {
    if (codeOf(error) !== 'log_of_another_prefix') throw error;
    const { found, path } = moreOf(error) as { found: string; path: string };
    throw fault(
      'log_of_another_prefix',
      `The streams of the event log ${path} have the prefix "${found}", but ${option}, or without it STREAM_PREFIX, is "${given}". Give ${option} "${found}".`,
    );
  };

interface LogArgument {
  readonly role: 'source' | 'target';
  readonly address: string;
  readonly prefix?: string | undefined;
  /** The name of the option for the prefix. */
  readonly option?: string;
}

export interface ArgumentLog extends LedgerLog {
  readonly address: string;
}

/** Opens a log for some work and always closes it. */
export const withLog = async <T>(
  io: Io,
  { role, option, ...argument }: LogArgument,
  work: (log: ArgumentLog) => Promise<T>,
): Promise<T> => {
  const configuration = readConfiguration(io.env);
  const streams = streamNames(argument.prefix ?? configuration.STREAM_PREFIX);
  const address = addressIn(configuration, argument.address);
  const opening = openLog(address, streams, role, warn(io));
  const log = await (option === undefined ? opening : opening.catch(namingOption(option, streams.prefix)));
  try {
    return await work({ address, streams, log });
  } finally {
    await log.close();
  }
};
