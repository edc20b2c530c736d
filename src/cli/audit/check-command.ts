import { Command } from 'commander';
import { checkExport, type CheckedExport } from '../../audit/check-export';
import { checkOffline, type CheckedOffline } from '../../audit/check-offline';
import type { Trailer } from '../../audit/export';
import { jsonOption, type JsonOption } from '../arguments';
import { withConfiguredLog } from './arguments';
import { counted, notice, printJson } from '../output';
import { withProgress } from '../progress';
import type { Io } from '../io';

interface Options extends JsonOption {
  readonly offline?: true;
}

const placeText = (upTo: Trailer['up_to']): string => {
  if (typeof upTo !== 'object') return upTo === undefined ? 'none' : `position ${upTo}`;
  const revisions = Object.entries(upTo).map(([kind, revision]) => `${kind}:${revision}`);
  return revisions.length === 0 ? 'none' : revisions.join(' and ');
};

const contentsOf = ({ events, after, up_to, filter }: Trailer): string => {
  const from = after === undefined ? 'from the beginning' : `after ${after}`;
  const conditions =
    Object.keys(filter).length === 0 ? 'all events' : `events with ${JSON.stringify(filter)}`;
  return `${counted(events, 'event')}, ${conditions} ${from} up to ${placeText(up_to)}`;
};

/** How much of what matches is in the file. */
const extentOf = ({ trailer, later = 0 }: CheckedExport): string => {
  const match = `${counted(later, 'later event')} of the log ${later === 1 ? 'matches' : 'match'} the conditions`;
  if (!trailer.complete) return `It is limited to ${counted(trailer.events, 'event')}: ${match}.`;
  return later === 0
    ? `It is complete: no later event of the log matches the conditions.`
    : `It is complete up to there. ${match}: recorded after the export, or removed from its end.`;
};

const unknownOffline = ({ trailer, isGapless }: CheckedOffline): string =>
  [
    'Not known without the log:',
    `- whether these are events of the log ${trailer.log}: whoever alters lines can also write a new trailer.`,
    isGapless
      ? '- whether events were removed from the end, and how many later ones match the conditions.'
      : '- whether matching events were removed anywhere, and how many later ones match the conditions.',
    ...(trailer.format === 'csv'
      ? ['- the number, positions and revisions of the events: only the digest of CSV is checked.']
      : []),
    ...(trailer.complete
      ? []
      : [`- what comes after the first ${counted(trailer.events, 'event')}: the export was limited.`]),
  ].join('\n');

const differs = (io: Io, file: string, from: string, { line, what }: { line?: number; what: string }): void =>
  notice(io, `${file} differs from ${from}${line === undefined ? '' : ` in line ${line}`}: ${what}`);

const checkAlone = async (io: Io, file: string, json: boolean): Promise<void> => {
  const checked = await checkOffline(file);
  const { difference, trailer } = checked;
  if (difference !== undefined) io.exitCode = 1;
  if (json) return printJson(io, { file, consistent: difference === undefined, difference, trailer });
  if (difference !== undefined) return differs(io, file, 'its trailer', difference);
  io.stdout.write(`${file} agrees with its trailer: ${contentsOf(trailer)}.\n${unknownOffline(checked)}\n`);
};

const check =
  (io: Io) =>
  (file: string, { json = false, offline }: Options): Promise<void> => {
    if (offline === true) return checkAlone(io, file, json);
    return withConfiguredLog(io, async (ledgerLog) => {
      const checked = await withProgress(io, 'Checking:', (line) =>
        checkExport(ledgerLog, file, (read) => line.show(`${read} events read`)),
      );
      const { difference, trailer, later } = checked;
      if (difference !== undefined) io.exitCode = 1;
      if (json)
        return printJson(io, { file, unaltered: difference === undefined, difference, later, trailer });
      if (difference !== undefined) return differs(io, file, 'the log', difference);
      io.stdout.write(`${file} is unaltered: ${contentsOf(trailer)}.\n${extentOf(checked)}\n`);
    });
  };

export const checkCommand = (io: Io): Command =>
  new Command('check')
    .description('compare an exported file with the log: is it complete and unaltered?')
    .argument('<file>', 'written by tenant-ledger audit --output, or by GET /events as NDJSON')
    .option('--offline', 'without the log: check only that the lines agree with the trailer')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
The lines are regenerated from the log, with the conditions that the trailer names, and compared byte by byte. The first
difference is named: an event that was altered, removed, added or moved. Exit code 1 if there is one. It also says how many
later events match: a file that was cut and given a new trailer looks like one that was exported earlier.
With --offline no log is read: the digest, the number of events and their revisions are checked, and what cannot be known
is listed.`,
    )
    .action(check(io));
