import type { Command } from 'commander';
import type { Rebuilt, RebuildStep } from '../projecting/rebuild';
import type { Difference } from '../projecting/compare';
import type { JsonOption } from './arguments';
import { sessionCommand, type OperatorSession } from './session';
import { notice, printOne } from './output';
import { paceOf, shareOf, withProgress, type ProgressLine } from './progress';
import { differenceText } from './projections-verify-command';
import type { Io } from './io';

interface Options extends JsonOption {
  readonly acceptDifferences?: boolean;
}

const progressIn = (line: ProgressLine) => {
  const began = Date.now();
  return (at: RebuildStep): void => {
    if (at.step !== 'building') return line.show(at.step);
    const pace = paceOf(at.done, at.total, at.done, Date.now() - began);
    line.show(`${shareOf(at.done, at.total)} (${pace})`);
  };
};

const rowOf = ({ set, comparison, parked, events }: Rebuilt) => ({
  set: set.id,
  events,
  documents_compared: comparison?.documents ?? null,
  differences: comparison?.differences ?? null,
  parked,
});

const MAX_SHOWN = 20;

/** Shows the first differences. `verify` lists all. */
const showFirst = (io: Io) => {
  let count = 0;
  return (difference: Difference): void => {
    count += 1;
    if (count <= MAX_SHOWN) notice(io, differenceText(difference));
    if (count === MAX_SHOWN + 1)
      notice(io, 'There are more: tenant-ledger projections verify lists all of them.');
  };
};

const run = async ({ io, app }: OperatorSession, options: Options): Promise<void> => {
  const { rebuild } = require('../projecting/rebuild') as typeof import('../projecting/rebuild');
  const { acceptDifferences = false, json } = options;
  const rebuilt = await withProgress(io, 'Rebuilding', (line) =>
    rebuild(app.replay, {
      acceptDifferences,
      onStep: progressIn(line),
      onDifference: json === true ? () => undefined : showFirst(io),
    }),
  );
  printOne(io, rowOf(rebuilt), options);
};

/** It tolerates read models that do not match the log: it repairs them. */
export const rebuildCommand = (io: Io): Command =>
  sessionCommand(io, 'rebuild', run, { anyReadModels: true })
    .description(
      'build new read models beside the live ones, compare them, and switch to them; if they differ or park another tenant, the live ones stay, and the exit code is 4',
    )
    .option('--accept-differences', 'switch all the same');
