import { Command } from 'commander';
import { copyLog } from '../event-log/copy';
import type { VerifiedLog } from '../event-log/verify-log';
import { commandGroup, option, type JsonOption } from './arguments';
import { FAILED } from './failure';
import type { Io } from './io';
import { ignoreCtrlZ, notice, printJson, printOne, printRecord, printTable } from './output';
import { withProgress } from './progress';
import { withLog, type AddressedLog } from './session';

const ADDRESSES = `An address: the path of a data folder, sqlite:PATH, esdb://HOST:PORT for EventStoreDB and KurrentDB, or the word
configured for the log that the environment names (EVENTSTORE_URL, else DATA_DIR). The streams have STREAM_PREFIX.`;

const addressOf = ({ address }: AddressedLog): string => {
  const { withoutSecrets } = require('../app/log-address') as typeof import('../app/log-address');
  return withoutSecrets(address);
};

interface CopyOptions extends JsonOption {
  readonly from: string;
  readonly to: string;
}

const copyCommand = (io: Io): Command =>
  new Command('copy')
    .description('copy an event log into another one, and compare them')
    .requiredOption('--from <address>', 'the log that is copied')
    .requiredOption('--to <address>', 'the log that it is copied to: a new one, or an unfinished copy')
    .addOption(option.json())
    .addHelpText(
      'after',
      `
${ADDRESSES}
Order, revisions, ids, data, metadata and recorded times are kept; the target has an identity of its own. Nobody can use
it until it is complete: if the command is killed, run it again. Exit code 1 if the logs differ at the end.`,
    )
    .action((options: CopyOptions) => {
      ignoreCtrlZ(io);
      return withLog(io, 'source', options.from, (from) =>
        withLog(io, 'target', options.to, async (to) => {
          const copied = await withProgress(io, 'Copying:', ({ showStep }) => copyLog(from, to, showStep));
          printOne(io, { from: addressOf(from), to: addressOf(to), ...copied }, options);
        }),
      );
    });

const print = (io: Io, log: AddressedLog, verified: VerifiedLog, json = false): void => {
  const { identity, events, streams, findings, found } = verified;
  const report = {
    log: addressOf(log),
    identity,
    events,
    streams,
    foreign_events: verified.foreign,
    last_position: verified.lastPosition ?? null,
    digest: verified.digest,
    findings_total: found,
    set_aside_total: verified.setAside,
  };
  if (json) return printJson(io, { ...report, findings });
  printRecord(io, report);
  const rows = findings.map((finding) => ({ ...finding }));
  printTable(io, rows);
  if (found > findings.length) notice(io, `${found - findings.length} more are not listed.`);
};

const verifyCommand = (io: Io): Command =>
  new Command('verify')
    .description('read a whole event log and report what is wrong with it')
    .argument('[address]', 'the log', 'configured')
    .addOption(option.json())
    .addHelpText(
      'after',
      `
${ADDRESSES}
Checked: the revisions of each stream go up from 0 without a gap, positions rise, every event of ours can be read.
Printed: the log's identity, the number of events and a SHA-256 digest over all of them, the same that log copy prints.
Exit code 1 if anything is found. What was set aside with "projections set-aside" is counted apart and does not fail.
Nothing is written.`,
    )
    .action((address: string, { json }: JsonOption) =>
      withLog(io, 'source', address, async (log) => {
        const { verifyLog } = require('../event-log/verify-log') as typeof import('../event-log/verify-log');
        const verified = await withProgress(io, 'Verifying:', ({ showStep }) =>
          verifyLog(log, (done, total) => showStep('reading', done, total)),
        );
        print(io, log, verified, json);
        if (verified.found > 0) io.exitCode = FAILED;
      }),
    );

export const logCommands = commandGroup('log', 'work on the event log itself', [copyCommand, verifyCommand]);
