import { InvalidArgumentError, Option } from 'commander';
import { openLog } from '../app/adapters';
import { settings, type Configuration } from '../configuration';
import type { Side } from '../event-log/own-events';
import { streamNames } from '../event-log/streams';
import { codeOf, fault, messageOf, type Fault } from '../fault';
import { say } from './output';

/** Event logs as the commands about them are given them: by address and prefix. */
export interface Place extends Side {
  readonly address: string;
}

export const ADDRESSES = `An address: the path of a data folder, sqlite:PATH, esdb://HOST:PORT for EventStoreDB and KurrentDB, or the word
configured for the log that the environment names (EVENTSTORE_URL, else DATA_DIR).`;

const prefix = (text: string): string => {
  if (settings.STREAM_PREFIX.read(text) === undefined)
    throw new InvalidArgumentError('It has at most 64 letters, digits, dots, underscores and hyphens.');
  return text;
};

export const prefixOption = (name: string): Option =>
  new Option(`${name} <prefix>`, 'the stream prefix there (default: STREAM_PREFIX)').argParser(prefix);

const onTrouble = (what: string, error: unknown): void => say(`${what} ${messageOf(error)}`);

/** The arguments of a command are seen by others on the machine: a password is better kept in the environment. */
const addressIn = ({ EVENTSTORE_URL, DATA_DIR }: Configuration, text: string): string =>
  text === 'configured' ? EVENTSTORE_URL || DATA_DIR : text;

/** Here the prefix is named by an option. */
const withOption =
  (option: string, prefixed: string) =>
  (error: unknown): never => {
    if (codeOf(error) !== 'log_of_another_prefix') throw error;
    const { found, path } = (error as Fault).more as { found: string; path: string };
    throw fault(
      'log_of_another_prefix',
      `The streams of the event log ${path} have the prefix "${found}", but ${option}, or without it STREAM_PREFIX, is "${prefixed}". Give ${option} "${found}".`,
    );
  };

export interface Named {
  readonly role: 'source' | 'target';
  readonly address: string;
  readonly prefix: string | undefined;
  /** By which the prefix is given. */
  readonly option: string;
}

export const openPlace = async (configuration: Configuration, named: Named): Promise<Place> => {
  const streams = streamNames(named.prefix ?? configuration.STREAM_PREFIX);
  const address = addressIn(configuration, named.address);
  const log = await openLog(address, streams, named.role, onTrouble).catch(
    withOption(named.option, streams.prefix),
  );
  return { address, streams, log };
};

interface Step {
  readonly step: string;
  readonly done: number;
  readonly total: number;
}

/** How far a step is, how fast it goes, and how long it will take. */
export const stepText = () => {
  let first: (Step & { readonly at: number }) | undefined;
  return (step: Step): string => {
    if (first?.step !== step.step) first = { ...step, at: Date.now() };
    const rate = (1_000 * (step.done - first.done)) / Math.max(1, Date.now() - first.at);
    const share = Math.min(100, Math.floor((100 * step.done) / Math.max(1, step.total)));
    const left = rate < 1 ? '' : `, ${Math.ceil(Math.max(0, step.total - step.done) / rate)} s left`;
    return `${step.step} ${share}% (${step.done} of ${step.total} events, ${Math.round(rate)}/s${left})`;
  };
};
