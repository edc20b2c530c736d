import { Command, Option } from 'commander';
import { withoutSecrets } from '../app/log-address';
import { readConfiguration } from '../configuration';
import { copyLog, type CopyStep } from '../event-log/copy';
import { jsonOption, wholeNumber } from './arguments';
import { ADDRESSES, openPlace, prefixOption, stepText, type Place } from './log-places';
import { verifyCommand } from './log-verify';
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

const patience = (seconds: Options['followUntilQuiet']): { quietMs: number; follow: boolean } => {
  if (seconds === undefined) return { quietMs: QUIET_MS, follow: false };
  return { quietMs: 1_000 * (seconds === true ? FOLLOWED_QUIET_SECONDS : seconds), follow: true };
};

/** Both logs of a copy, closed again whatever happens. */
const withBoth = async (options: Options, work: (from: Place, to: Place) => Promise<void>): Promise<void> => {
  const configuration = readConfiguration(process.env);
  const from = await openPlace(configuration, {
    role: 'source',
    address: options.from,
    prefix: options.fromPrefix,
    option: '--from-prefix',
  });
  try {
    const to = await openPlace(configuration, {
      role: 'target',
      address: options.to,
      prefix: options.toPrefix,
      option: '--to-prefix',
    });
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
    const onProgress = (step: CopyStep): void => line.tell(text(step));
    const timing = patience(options.followUntilQuiet);
    const done = await copyLog(from, to, { ...timing, onProgress }).finally(line.end);
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
    .addOption(prefixOption('--from-prefix'))
    .addOption(prefixOption('--to-prefix'))
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
${ADDRESSES}
Order, revisions, ids, data, metadata and recorded times are kept; the target has an identity of its own. It can be
killed and run again at any time. At its end both logs have been compared event by event: unequal is exit code 1.`,
    )
    .action(copy);

export const logCommands = (): Command =>
  new Command('log')
    .description('work on the event log itself')
    .addCommand(copyCommand())
    .addCommand(verifyCommand());
