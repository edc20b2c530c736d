import { Command, InvalidArgumentError, Option } from 'commander';
import { openLog, withoutSecrets } from '../app';
import { readConfiguration, settings, type Configuration } from '../configuration';
import { copyLog, type CopyStep } from '../event-log/copy';
import type { Side } from '../event-log/copy-reading';
import { streamNames } from '../event-log/streams';
import { codeOf, fault, messageOf, type Fault } from '../fault';
import { jsonOption, wholeNumber } from './arguments';
import { printOne, progressLine, say } from './output';

interface Options {
  readonly from: string;
  readonly to: string;
  readonly fromPrefix?: string;
  readonly toPrefix?: string;
  readonly followUntilQuiet?: number | true;
  readonly json?: boolean;
}

interface Place extends Side {
  readonly address: string;
}

/** Long enough to notice a log that is being written, short enough to wait for. */
const QUIET_MS = 1_000;
const FOLLOWED_QUIET_SECONDS = 5;

const prefix = (text: string): string => {
  if (settings.STREAM_PREFIX.read(text) === undefined)
    throw new InvalidArgumentError('It has at most 64 letters, digits, dots, underscores and hyphens.');
  return text;
};

const stepText = () => {
  let first: (CopyStep & { readonly at: number }) | undefined;
  return (step: CopyStep): string => {
    if (first?.step !== step.step) first = { ...step, at: Date.now() };
    const rate = (1_000 * (step.done - first.done)) / Math.max(1, Date.now() - first.at);
    const share = Math.min(100, Math.floor((100 * step.done) / Math.max(1, step.total)));
    const left = rate < 1 ? '' : `, ${Math.ceil(Math.max(0, step.total - step.done) / rate)} s left`;
    return `${step.step} ${share}% (${step.done} of ${step.total} events, ${Math.round(rate)}/s${left})`;
  };
};

const patience = (seconds: Options['followUntilQuiet']): { quietMs: number; follow: boolean } => {
  if (seconds === undefined) return { quietMs: QUIET_MS, follow: false };
  return { quietMs: 1_000 * (seconds === true ? FOLLOWED_QUIET_SECONDS : seconds), follow: true };
};

const onTrouble = (what: string, error: unknown): void => say(`${what} ${messageOf(error)}`);

/** The arguments of a command are seen by others on the machine: a password is better kept in the environment. */
const addressIn =
  ({ EVENTSTORE_URL, DATA_DIR }: Configuration) =>
  (text: string): string =>
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

/** Both logs of a copy, closed again whatever happens. */
const withBoth = async (options: Options, work: (from: Place, to: Place) => Promise<void>): Promise<void> => {
  const configuration = readConfiguration(process.env);
  const open = async (role: 'source' | 'target', wanted: string, prefixed?: string): Promise<Place> => {
    const streams = streamNames(prefixed ?? configuration.STREAM_PREFIX);
    const address = addressIn(configuration)(wanted);
    const option = role === 'source' ? '--from-prefix' : '--to-prefix';
    const log = await openLog(address, streams, role, onTrouble).catch(withOption(option, streams.prefix));
    return { address, streams, log };
  };
  const from = await open('source', options.from, options.fromPrefix);
  try {
    const to = await open('target', options.to, options.toPrefix);
    try {
      await work(from, to);
    } finally {
      await to.log.close();
    }
  } finally {
    await from.log.close();
  }
};

const copy = (options: Options): Promise<void> =>
  withBoth(options, async (from, to) => {
    const line = progressLine('Copying:');
    const text = stepText();
    const began = Date.now();
    const tell = (step: CopyStep): void => line.tell(text(step));
    const done = await copyLog(from, to, { ...patience(options.followUntilQuiet), tell }).finally(line.end);
    const { events, copied, foreign, digest } = done;
    if (foreign.source > 0)
      say(`${foreign.source} events of the source lie in streams that are not ours: not copied.`);
    const report = {
      from: withoutSecrets(from.address),
      to: withoutSecrets(to.address),
      events,
      copied,
      source_digest: digest.source,
      target_digest: digest.target,
      foreign_in_source: foreign.source,
      foreign_in_target: foreign.target,
      seconds: Math.round((Date.now() - began) / 100) / 10,
    };
    printOne(report, options);
  });

const copyCommand = (): Command =>
  new Command('copy')
    .description('copy an event log into another one, and verify it')
    .requiredOption('--from <address>', 'the log that is copied')
    .requiredOption('--to <address>', 'the log that it is copied to: empty, or an unfinished copy')
    .addOption(
      new Option('--from-prefix <prefix>', 'the stream prefix there (default: STREAM_PREFIX)').argParser(
        prefix,
      ),
    )
    .addOption(
      new Option('--to-prefix <prefix>', 'the stream prefix there (default: STREAM_PREFIX)').argParser(
        prefix,
      ),
    )
    .addOption(
      new Option(
        '--follow-until-quiet [seconds]',
        `copy along while the source grows, until it is quiet for so long (${FOLLOWED_QUIET_SECONDS} s)`,
      ).argParser(wholeNumber),
    )
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
An address: the path of a data folder, sqlite:PATH, esdb://HOST:PORT for EventStoreDB and KurrentDB, or the word
configured for the log that the environment names (EVENTSTORE_URL, else DATA_DIR).
Order, revisions, ids, data, metadata and recorded times are kept; the target has an identity of its own. It can be
killed and run again at any time. At its end both logs have been compared event by event: unequal is exit code 1.`,
    )
    .action(copy);

export const logCommands = (): Command =>
  new Command('log').description('work on the event log itself').addCommand(copyCommand());
