import type { Command } from 'commander';
import { projections } from '../../../projections/projections';
import { formats, NEWEST_FORMAT } from '../../domain/formats';
import { fault } from '../../fault';
import { olderPrograms } from '../../projecting/older-programs';
import { commandGroup, yesOption, type JsonOption, type YesOption } from '../arguments';
import { confirmedIrreversible } from '../confirmation';
import { copyCommand } from './copy-command';
import { verifyCommand } from './verify-command';
import { sessionCommand, type OperatorSession } from '../operator-session';
import { notice, printOne } from '../output';
import type { Io } from '../io';

const mustBeNoOlderProgram = async ({ app }: OperatorSession): Promise<void> => {
  const older = await olderPrograms(app.replay.readModels, projections);
  if (older.length > 0)
    throw fault(
      'older_program_runs',
      `An older program is still running: ${older.join(', ')} projects read models of an earlier version. Stop it, and run this command again.`,
    );
};

const run = async (session: OperatorSession, options: JsonOption & YesOption): Promise<void> => {
  const { io } = session;
  const { log, store } = session.app;
  const before = await log.format();
  const allowed = formats.filter(({ format }) => format > before).map(({ allows }) => allows);
  if (allowed.length > 0) {
    await mustBeNoOlderProgram(session);
    const isAsked = options.yes !== true && io.stdin.isTTY === true;
    // With --json and nobody to ask, stderr is empty or one JSON object.
    if (isAsked || options.json !== true)
      notice(
        io,
        `The format of the event log is ${before}. Format ${NEWEST_FORMAT} allows ${allowed.join('; ')}.
Programs that know only an earlier format cannot read what is written then.`,
      );
    const question = `raise the format of ${store} to ${NEWEST_FORMAT}: no older program runs any more, or will be started again`;
    if (!(await confirmedIrreversible(io, question, options, 'Nothing was changed.'))) return;
    await log.raiseFormat(NEWEST_FORMAT);
  }
  printOne(io, { log: store, format_before: before, format: await log.format(), allowed }, options);
};

const upgrade = (io: Io): Command =>
  sessionCommand(io, 'upgrade', run)
    .description('finish an upgrade: allow events that older programs cannot read, after confirmation')
    .addOption(yesOption())
    .addHelpText(
      'after',
      `
Until then a new program beside older ones, or alone, writes only what older ones can read, and answers 409
upgrade_unfinished to requests that need more; going back to the older program is possible. Run it when every instance
runs the new program and none will go back. All of them notice at once. It cannot be undone, and is refused while an
older program is seen to project the same read models; any other cannot be seen.`,
    );

export const logCommands = (io: Io): Command =>
  commandGroup('log', 'work on the event log itself', [copyCommand(io), upgrade(io), verifyCommand(io)]);
