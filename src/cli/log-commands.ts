import { Command, InvalidArgumentError, Option } from 'commander';
import { openLog, withoutSecrets } from '../app';
import { readConfiguration, settings } from '../configuration';
import { copyLog, type CopyStep } from '../event-log/copy';
import { streamNames } from '../event-log/streams';
import { messageOf } from '../fault';
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

/** Long enough to notice a log that is being written, short enough to wait for. */
const QUIET_MS = 1_000;
const FOLLOWED_QUIET_SECONDS = 5;

const prefix = (text: string): string => {
  if (settings.STREAM_PREFIX.read(text) === undefined)
    throw new InvalidArgumentError('It has at most 64 letters, digits, dots, underscores and hyphens.');
  return text;
};

const stepText = (began: number) => {
  let first: CopyStep | undefined;
  return (step: CopyStep): string => {
    if (first?.step !== step.step) first = step;
    const rate = (1_000 * (step.done - first.done)) / Math.max(1, Date.now() - began);
    const share = Math.min(100, Math.floor((100 * step.done) / Math.max(1, step.total)));
    return `${step.step} ${share}% (${step.done} of ${step.total} events, ${Math.round(rate)}/s)`;
  };
};

const patience = (seconds: Options['followUntilQuiet']): { quietMs: number; follow: boolean } => {
  if (seconds === undefined) return { quietMs: QUIET_MS, follow: false };
  return { quietMs: 1_000 * (seconds === true ? FOLLOWED_QUIET_SECONDS : seconds), follow: true };
};

const onTrouble = (what: string, error: unknown): void => say(`${what} ${messageOf(error)}`);

const copy = async (options: Options): Promise<void> => {
  const { STREAM_PREFIX } = readConfiguration(process.env);
  const streams = {
    from: streamNames(options.fromPrefix ?? STREAM_PREFIX),
    to: streamNames(options.toPrefix ?? STREAM_PREFIX),
  };
  const from = { streams: streams.from, log: await openLog(options.from, streams.from, 'source', onTrouble) };
  try {
    const to = { streams: streams.to, log: await openLog(options.to, streams.to, 'target', onTrouble) };
    const line = progressLine('Copying:');
    const began = Date.now();
    const text = stepText(began);
    try {
      const done = await copyLog(from, to, {
        ...patience(options.followUntilQuiet),
        tell: (step) => line.tell(text(step)),
      });
      line.end();
      if (done.foreign.source > 0)
        say(`${done.foreign.source} events of the source lie in streams that are not ours: not copied.`);
      printOne(
        {
          from: withoutSecrets(options.from),
          to: withoutSecrets(options.to),
          events: done.events,
          copied: done.copied,
          source_digest: done.digest.source,
          target_digest: done.digest.target,
          foreign_in_source: done.foreign.source,
          foreign_in_target: done.foreign.target,
          seconds: Math.round((Date.now() - began) / 100) / 10,
        },
        options,
      );
    } finally {
      line.end();
      await to.log.close();
    }
  } finally {
    await from.log.close();
  }
};

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
An address: the path of a data folder, sqlite:PATH, or esdb://HOST:PORT for EventStoreDB and KurrentDB.
Order, revisions, ids, data, metadata and recorded times are kept; the target has an identity of its own. It can be
killed and run again at any time. At its end both logs have been compared event by event: unequal is exit code 1.`,
    )
    .action(copy);

export const logCommands = (): Command =>
  new Command('log').description('work on the event log itself').addCommand(copyCommand());
