import { Command } from 'commander';
import { readFileSync } from 'node:fs';
import { withoutSecrets } from '../../app/log-address';
import { verifyLog, type EarlierHistory, type VerifiedLog } from '../../event-log/verify-log';
import { fault, messageOf } from '../../fault';
import { isJsonObject } from '../../json';
import { jsonOption, type JsonOption } from '../arguments';
import { ADDRESSES, prefixOption, withLog, type ArgumentLog } from './arguments';
import { notice, printJson, printRecord, printTable } from '../output';
import { withProgress } from '../progress';
import type { Io } from '../io';

interface Options extends JsonOption {
  readonly prefix?: string;
  readonly against?: string;
}

const isHistory = (value: unknown): value is EarlierHistory => {
  const { events, digest } = isJsonObject(value) ? value : {};
  return Number.isSafeInteger(events) && typeof digest === 'string' && /^[0-9a-f]{64}$/.test(digest);
};

/** Read first, so that a mistyped name fails before the whole log is read. */
const earlierIn = (file: string): EarlierHistory => {
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw fault('file_unreadable', `The file ${file} cannot be read: ${messageOf(error)}`);
  }
  if (isHistory(parsed)) return parsed;
  throw fault(
    'file_unreadable',
    `The file ${file} is not the output of tenant-ledger log verify --json: it has no events and digest.`,
  );
};

const outcomes = {
  unchanged: (earlier: EarlierHistory) =>
    `This log still starts with that history, ${earlier.events} events.`,
  changed: (earlier: EarlierHistory) =>
    `This log does not start with that history: something in its first ${earlier.events} events was changed, removed or put in between.`,
  cut: (earlier: EarlierHistory, { events }: VerifiedLog) =>
    `This log does not start with that history of ${earlier.events} events: it has only ${events}. It was cut, or is another one.`,
};

const report = (
  { address }: ArgumentLog,
  { identity, events, streams, foreign, lastPosition, digest, found, noted, earlier }: VerifiedLog,
) => ({
  log: withoutSecrets(address),
  identity,
  events,
  streams,
  foreign_events: foreign,
  last_position: lastPosition ?? null,
  digest,
  findings_total: found,
  copies_total: noted.copy,
  set_aside_total: noted.set_aside,
  ...(earlier === undefined ? {} : { earlier_history: earlier }),
});

const print = (
  io: Io,
  log: ArgumentLog,
  verified: VerifiedLog,
  earlier: EarlierHistory | undefined,
  json = false,
) => {
  const all = report(log, verified);
  const { findings, found, notes, noted } = verified;
  if (json) return printJson(io, { ...all, findings, notes });
  printRecord(io, all);
  const listed = [...findings, ...notes];
  const more = found + noted.copy + noted.set_aside - listed.length;
  if (listed.length > 0)
    printTable(
      io,
      listed.map((finding) => ({ ...finding })),
    );
  if (more > 0) notice(io, `${more} more are not listed.`);
  if (earlier !== undefined && verified.earlier !== undefined)
    notice(io, outcomes[verified.earlier](earlier, verified));
};

const verify =
  (io: Io) =>
  async (address: string, { prefix, against, json }: Options): Promise<void> => {
    const earlier = against === undefined ? undefined : earlierIn(against);
    await withLog(io, { role: 'source', address, prefix, option: '--prefix' }, async (log) => {
      const verified = await withProgress(io, 'Verifying:', ({ showStep }) =>
        verifyLog(log, { earlier, onProgress: (done, total) => showStep('reading', done, total) }),
      );
      print(io, log, verified, earlier, json);
      const isSound = verified.found === 0 && (verified.earlier ?? 'unchanged') === 'unchanged';
      if (!isSound) io.exitCode = 1;
    });
  };

export const verifyCommand = (io: Io): Command =>
  new Command('verify')
    .description('read a whole event log and report what is wrong with it')
    .argument('[address]', 'the log', 'configured')
    .addOption(prefixOption('--prefix'))
    .option(
      '--against <file>',
      'an earlier output (--json): check that this log still starts with its history',
    )
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
${ADDRESSES}
Checked: the revisions of each stream go up from 0 without a gap, positions rise, every event of ours can be read, no
event id comes twice within a tenant. Printed: the log's identity, the number of events and a SHA-256 digest over all of
them, the same that log copy prints. Keep the output: --against finds what was changed in place or cut since then, also
in a copy of the log. Exit code 1 if anything is found. Second copies of an event with equal content, which count once,
and what was set aside with "projections set-aside" are counted apart and do not fail. Nothing is written.`,
    )
    .action(verify(io));
