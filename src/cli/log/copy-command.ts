import { Command, Option } from 'commander';
import { withoutSecrets } from '../../app/log-address';
import { copyLog } from '../../event-log/copy';
import { jsonOption, wholeNumber, type JsonOption } from '../arguments';
import { ADDRESSES, prefixOption, withLog, type ArgumentLog } from './arguments';
import { ignoreCtrlZ, notice, printOne } from '../output';
import { withProgress } from '../progress';
import type { Io } from '../io';

interface Options extends JsonOption {
  readonly from: string;
  readonly to: string;
  readonly fromPrefix?: string;
  readonly toPrefix?: string;
  readonly followUntilQuiet?: number | true;
}

const DEFAULT_QUIET_SECONDS = 5;

/** By default a second: long enough to detect writes to the source, short enough to wait for. */
const quietFor = (seconds: Options['followUntilQuiet'] = 1): number =>
  1_000 * (seconds === true ? DEFAULT_QUIET_SECONDS : seconds);

const withBothLogs = (
  io: Io,
  options: Options,
  work: (from: ArgumentLog, to: ArgumentLog) => Promise<void>,
): Promise<void> => {
  const source = { address: options.from, prefix: options.fromPrefix, option: '--from-prefix' };
  const target = { address: options.to, prefix: options.toPrefix, option: '--to-prefix' };
  ignoreCtrlZ(io);
  return withLog(io, { role: 'source', ...source }, (from) =>
    withLog(io, { role: 'target', ...target }, (to) => work(from, to)),
  );
};

const copy =
  (io: Io) =>
  (options: Options): Promise<void> =>
    withBothLogs(io, options, async (from, to) => {
      const began = Date.now();
      const { events, copied, foreign, digest } = await withProgress(io, 'Copying:', ({ showStep }) =>
        copyLog(from, to, {
          quietMs: quietFor(options.followUntilQuiet),
          follow: options.followUntilQuiet !== undefined,
          onProgress: ({ step, done, total }) => showStep(step, done, total),
        }),
      );
      if (foreign.source > 0)
        notice(
          io,
          `${foreign.source} events of the source are in streams that do not belong to this service: not copied.`,
        );
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
      printOne(io, report, options);
    });

export const copyCommand = (io: Io): Command =>
  new Command('copy')
    .description('copy an event log into another one, and verify it')
    .requiredOption('--from <address>', 'the log that is copied')
    .requiredOption(
      '--to <address>',
      'the log that it is copied to: new, or an earlier copy of the same source',
    )
    .addOption(prefixOption('--from-prefix'))
    .addOption(prefixOption('--to-prefix'))
    .addOption(
      new Option(
        '--follow-until-quiet [seconds]',
        `keep copying while the source grows, until it has been quiet for this long (default: ${DEFAULT_QUIET_SECONDS})`,
      ).argParser(wholeNumber),
    )
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
${ADDRESSES}
Order, revisions, ids, data, metadata and recorded times are kept; the target has an identity of its own. The command
can be killed and run again at any time. At the end both logs are compared event by event; exit code 1 if they differ.`,
    )
    .action(copy(io));
