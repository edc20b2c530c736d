import { Command } from 'commander';
import { parsedJson } from '../json';
import { option, type JsonOption } from './arguments';
import { FAILED } from './failure';
import { counted, notice, printJson } from './output';
import { withProgress } from './progress';
import { withConfiguredLog } from './session';
import type { Io } from './io';

/** What the log has in the place of a line that differs. */
const expectedText = (line: string | undefined): string => {
  if (line === undefined) return 'nothing more';
  const { id } = parsedJson(line) as { readonly id?: string };
  return id === undefined ? 'another trailer' : `event ${id}`;
};

const check =
  (io: Io) =>
  (file: string, { json = false }: JsonOption): Promise<void> =>
    withConfiguredLog(io, async (ledgerLog) => {
      const { checkExport } = require('../audit/check-export') as typeof import('../audit/check-export');
      const { trailer, difference } = await withProgress(io, 'Checking:', (line) =>
        checkExport(ledgerLog, file, (read) => line.show(`${read} events read`)),
      );
      if (difference !== undefined) io.exitCode = FAILED;
      if (json) return printJson(io, { file, unaltered: difference === undefined, difference, trailer });
      const { filter, after, limit, up_to } = trailer;
      if (difference === undefined)
        io.stdout.write(
          `${file} is unaltered: ${counted(trailer.events, 'event')} with ${JSON.stringify({ filter, after, limit, up_to })}\n`,
        );
      else
        notice(
          io,
          `${file} differs from the log in line ${difference.line}: the log has ${expectedText(difference.expected)} there.`,
        );
    });

export const auditCheckCommand = (io: Io): Command =>
  new Command('check')
    .description('compare an exported file with the log: is it complete and unaltered?')
    .argument('<file>', 'written by tenant-ledger audit, or by GET /events as NDJSON')
    .addOption(option.json())
    .addHelpText(
      'after',
      `
The same export is made again from the log, with the conditions that the trailer names, and compared line by line. The
first line that differs is named. Exit code 0: equal, 1: different. It is complete only for these conditions, which are
printed. Without the log, the digest in the trailer can be compared with: head -n -1 FILE | sha256sum`,
    )
    .action(check(io));
