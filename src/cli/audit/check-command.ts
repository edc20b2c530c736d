import { Command } from 'commander';
import { checkExport, type CheckedExport } from '../../audit/check-export';
import { jsonOption, type JsonOption } from '../arguments';
import { withConfiguredLog } from './arguments';
import { counted, notice, printJson } from '../output';
import { withProgress } from '../progress';

const sentenceOf = ({ trailer }: CheckedExport, file: string): string => {
  const { events, after, up_to = 'none', limit, filter } = trailer;
  const range = `${after === undefined ? 'from the beginning' : `after position ${after}`} up to position ${up_to}`;
  const atMost = limit === undefined ? '' : `, the first ${limit}`;
  const conditions =
    Object.keys(filter).length === 0 ? 'all events' : `events with ${JSON.stringify(filter)}`;
  return `${file} is complete and unaltered: ${counted(events, 'event')}, ${conditions} ${range}${atMost}.`;
};

const check = (file: string, { json }: JsonOption): Promise<void> =>
  withConfiguredLog(async (ledgerLog) => {
    const checked = await withProgress('Checking:', (line) =>
      checkExport(ledgerLog, file, (read) => line.show(`${read} events read`)),
    );
    const { difference, trailer } = checked;
    if (difference !== undefined) process.exitCode = 1;
    if (json === true) return printJson({ file, unaltered: difference === undefined, difference, trailer });
    if (difference === undefined) return void process.stdout.write(`${sentenceOf(checked, file)}\n`);
    notice(`${file} differs from the log in line ${difference.line}: ${difference.what}`);
  });

export const checkCommand = (): Command =>
  new Command('check')
    .description('compare an exported file with the log: is it complete and unaltered?')
    .argument('<file>', 'written by tenant-ledger audit --output')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
The lines are made again from the log, with the conditions that the trailer names, and compared byte by byte. The first
difference is named: an event that was altered, removed, added or moved. Exit code 1 if there is one.`,
    )
    .action(check);
