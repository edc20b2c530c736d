import { constants, setPriority } from 'node:os';
import { projections } from '../../projections/projections';
import type { Projector } from '../../projections/projector';
import { readConfiguration, type Configuration } from '../configuration';
import { codeOf, fault, messageOf } from '../fault';
import type { Difference } from '../projecting/compare';
import type { Rebuilt, RebuildStep } from '../projecting/rebuild';
import type { Verified } from '../projecting/verify';
import { planRebuild } from '../projecting/rebuild-plan';
import { rebuildInWorkers, verifyInWorkers } from '../app/replay-workers';
import { together } from '../together';
import { atDesk } from './desk';
import { printJson, printMany, progressLine, say } from './output';

/** More differences than this are only counted in the JSON report. */
const MOST_SHOWN = 10_000;

/** The projections with these names; all of them when none is named. */
export const chosen = (names: readonly string[]) => {
  for (const name of names)
    if (!projections.some((projector) => projector.name === name))
      throw fault(
        'projection_unknown',
        `There is no projection ${name}. There are: ${projections.map((one) => one.name).join(', ')}.`,
      );
  return names.length === 0 ? projections : projections.filter((projector) => names.includes(projector.name));
};

export interface RebuildArguments {
  readonly all?: boolean;
  readonly ifEqual?: boolean;
  readonly acceptParked?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

type Filling = Extract<RebuildStep, { step: 'filling' }>;

const shareOf = ({ done, total }: Filling): string => `${Math.floor((100 * done) / Math.max(1, total))}%`;

const paceOf = ({ done, total }: Filling, seconds: number): string => {
  const rate = done / Math.max(0.001, seconds);
  const left = Math.ceil((total - done) / Math.max(1, rate));
  return ` (${done} of ${total} events, ${Math.round(rate)}/s, ${left} s left)`;
};

/** One line for all of them: each one's step, and the pace of the slowest that is still being filled. */
const progressOf = (line: ReturnType<typeof progressLine>) => {
  const began = Date.now();
  const steps = new Map<string, RebuildStep>();
  return (name: string, step: RebuildStep): void => {
    steps.set(name, step);
    const all = [...steps].map(([one, at]) => `${one} ${at.step === 'filling' ? shareOf(at) : at.step}`);
    const [slowest] = [...steps.values()]
      .filter((one) => one.step === 'filling')
      .toSorted((a, b) => a.done - b.done);
    const pace = slowest === undefined ? '' : paceOf(slowest, (Date.now() - began) / 1_000);
    line.tell(`${all.join(', ')}${pace}`);
  };
};

const rowOf = ({ comparison, ...row }: Rebuilt) => ({
  ...row,
  documents_compared: comparison?.documents ?? null,
  differences: comparison?.differences ?? null,
});

/** Who is served goes first. Threads have the priority of the one that starts them. */
const stepBack = (): void => {
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // Where it is not allowed, it goes on as it is.
  }
};

const onTrouble = (what: string, error: unknown): void => say(`${what} ${String(error)}`);

const planAll = (wanted: readonly Projector[], options: RebuildArguments): Promise<void> =>
  atDesk(async ({ app }) => {
    const plans = await together(wanted.map((projector) => planRebuild(app.replay, projector)));
    printMany(
      plans.map((plan) => ({ ...plan })),
      options,
      '',
    );
  });

/** Read models that do not fit a log that was set back are what a rebuild is for. */
const checkedConfiguration = (): Promise<Configuration> =>
  atDesk(async (desk) => desk.configuration).catch((error: unknown) => {
    if (codeOf(error) !== 'log_set_back') throw error;
    say(messageOf(error));
    return readConfiguration(process.env);
  });

/** The threads open for themselves what they need: nobody sits at the desk meanwhile, which would only take memory. */
export const rebuildAll = async (names: readonly string[], options: RebuildArguments): Promise<void> => {
  const wanted = chosen(names);
  if (options.dryRun === true) return planAll(wanted, options);
  const configuration = await checkedConfiguration();
  stepBack();
  const line = progressLine('Rebuilding');
  const wish = { ifEqual: options.ifEqual === true, acceptParked: options.acceptParked === true };
  const done = await rebuildInWorkers(configuration, wanted, wish, {
    onError: onTrouble,
    onStep: progressOf(line),
  });
  line.end();
  printMany(
    done.filter((one) => one.status === 'fulfilled').map(({ value }) => rowOf(value)),
    options,
    'Nothing was rebuilt.',
  );
  mustAllBeDone(done);
};

/** One refusal is told as it is; of several each one's sentence. */
const mustAllBeDone = (done: readonly PromiseSettledResult<Rebuilt>[]): void => {
  const failures = done.filter((one) => one.status === 'rejected').map(({ reason }) => reason as Error);
  for (const failure of failures.slice(1)) say(failure.message);
  if (failures[0] !== undefined) throw failures[0];
};

/** A parked tenant is a read model that does not show everything. */
const isSound = ({ differences, parked, gaps }: Verified): boolean =>
  differences === 0 && parked.length === 0 && gaps.length === 0;

export const verifyAll = async (
  names: readonly string[],
  options: { tenant?: string; json?: boolean },
): Promise<void> => {
  const wanted = chosen(names);
  const configuration = await atDesk(async (desk) => {
    await desk.upToDate();
    return desk.configuration;
  });
  stepBack();
  const differences: unknown[] = [];
  const line = progressLine('Verifying');
  const onDifference = (
    projection: string,
    { tenantId, collection, key, kind, live: is, replayed }: Difference,
  ): void => {
    const found = { projection, kind, tenant_id: tenantId, collection, key };
    if (differences.length < MOST_SHOWN)
      differences.push({ ...found, live: is ?? null, replayed: replayed ?? null });
    if (options.json !== true)
      say(
        `${JSON.stringify(found)}\n  live:     ${JSON.stringify(is)}\n  replayed: ${JSON.stringify(replayed)}`,
      );
  };
  const hear = { onError: onTrouble, onProgress: line.tell, onDifference };
  const reports = await verifyInWorkers(configuration, wanted, options.tenant, hear).finally(line.end);
  if (!reports.every(isSound)) process.exitCode = 1;
  if (options.json === true) return printJson({ projections: reports, differences });
  for (const { projection, gaps } of reports)
    for (const { tenant_id, event_id, reason } of gaps)
      say(`${projection}: tenant ${tenant_id}, event ${event_id}. ${reason}`);
  if (reports.some(({ parked }) => parked.length > 0))
    say('Tenants are parked: tenant-ledger projections parked says at which events, and why.');
  printMany(
    reports.map((report) => ({ ...report, gaps: report.gaps.map(({ tenant_id }) => tenant_id) })),
    options,
    '',
  );
};
