import { Command } from 'commander';
import { projections } from '../../../projections/projections';
import { rebuildInWorkers } from '../../app/replay-workers';
import { readConfiguration, type Configuration } from '../../configuration';
import { codeOf, messageOf } from '../../fault';
import type { Difference } from '../../projecting/compare';
import type { Rebuilt, RebuildStep } from '../../projecting/rebuild';
import { jsonOption, type JsonOption } from '../arguments';
import { inSession, warn } from '../operator-session';
import { notice, printMany } from '../output';
import { paceOf, shareOf, withProgress, type ProgressLine } from '../progress';
import { differenceText } from './verify-command';
import type { Io } from '../io';

interface Options extends JsonOption {
  readonly acceptDifferences?: boolean;
}

/** One line for all projections: the step of each, and the pace of the slowest that is still building. */
const progressIn = (line: ProgressLine) => {
  const began = Date.now();
  const steps = new Map<string, RebuildStep>();
  return (name: string, step: RebuildStep): void => {
    steps.set(name, step);
    const all = [...steps].map(
      ([projection, at]) => `${projection} ${at.step === 'building' ? shareOf(at.done, at.total) : at.step}`,
    );
    const [slowest] = [...steps.values()]
      .filter((at) => at.step === 'building')
      .toSorted((a, b) => a.done - b.done);
    const { done = 0, total = 0 } = slowest ?? {};
    const pace = slowest === undefined ? '' : ` (${paceOf(done, total, done, Date.now() - began)})`;
    line.show(`${all.join(', ')}${pace}`);
  };
};

const rowOf = ({ comparison, ...row }: Rebuilt) => ({
  ...row,
  documents_compared: comparison?.documents ?? null,
  differences: comparison?.differences ?? null,
});

/** Tolerates read models that do not match a log that was rolled back: a rebuild repairs them. */
const checkedConfiguration = (io: Io): Promise<Configuration> =>
  inSession(io, async ({ configuration }) => configuration).catch((error: unknown) => {
    if (codeOf(error) !== 'log_set_back') throw error;
    notice(io, messageOf(error));
    return readConfiguration(io.env);
  });

const MAX_SHOWN = 20;

/** Shows the first differences. `verify` lists all. */
const showFirst = (io: Io) => {
  let count = 0;
  return (projection: string, difference: Difference): void => {
    count += 1;
    if (count <= MAX_SHOWN) notice(io, differenceText(projection, difference));
    if (count === MAX_SHOWN + 1)
      notice(io, 'There are more: tenant-ledger projections verify lists all of them.');
  };
};

/** Throws the first failure, after reporting the others. */
const throwFailures = (io: Io, outcomes: readonly PromiseSettledResult<Rebuilt>[]): void => {
  const failures = outcomes
    .filter((outcome) => outcome.status === 'rejected')
    .map(({ reason }) => reason as Error);
  for (const failure of failures.slice(1)) notice(io, failure.message);
  if (failures[0] !== undefined) throw failures[0];
};

/** The session is closed first: the workers open their own stores, and it would only use memory. */
const rebuild =
  (io: Io) =>
  async (options: Options): Promise<void> => {
    const configuration = await checkedConfiguration(io);
    const { acceptDifferences = false } = options;
    const outcomes = await withProgress(io, 'Rebuilding', (line) =>
      rebuildInWorkers(
        configuration,
        projections,
        { acceptDifferences },
        {
          onError: warn(io),
          onStep: progressIn(line),
          onDifference: options.json === true ? () => undefined : showFirst(io),
        },
      ),
    );
    printMany(
      io,
      outcomes.filter((outcome) => outcome.status === 'fulfilled').map(({ value }) => rowOf(value)),
      options,
      'Nothing was rebuilt.',
    );
    throwFailures(io, outcomes);
  };

export const rebuildCommand = (io: Io): Command =>
  new Command('rebuild')
    .description(
      'build new read models beside the live ones, compare them, and switch to them; one that differs or parks a tenant is kept, the live one stays, and the exit code is 4',
    )
    .option('--accept-differences', 'switch all the same; resumes what an earlier rebuild kept')
    .addOption(jsonOption())
    .action(rebuild(io));
