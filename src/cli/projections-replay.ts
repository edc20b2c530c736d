import { projections } from '../../projections/projections';
import { refusal } from '../domain/refusal';
import { rebuild, type RebuildStep } from '../projecting/rebuild';
import { verify } from '../projecting/verify';
import type { Desk } from './desk';
import { printJson, printMany, progressLine, say } from './output';

/** More differences than this are only counted in the JSON report. */
const MOST_SHOWN = 10_000;

/** The projections with these names; all of them when none is named. */
export const chosen = (names: readonly string[]) => {
  for (const name of names)
    if (!projections.some((projector) => projector.name === name))
      throw refusal(
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

const stepText = (began: number) => (step: RebuildStep) => {
  if (step.step !== 'filling') return step.step;
  const seconds = Math.max(0.001, (Date.now() - began) / 1_000);
  const rate = step.done / seconds;
  const left = Math.ceil((step.total - step.done) / Math.max(1, rate));
  const share = Math.floor((100 * step.done) / Math.max(1, step.total));
  return `${share}% (${step.done} of ${step.total} events, ${Math.round(rate)}/s, ${left} s left)`;
};

export const rebuildAll = async (
  { app, ...desk }: Desk,
  names: readonly string[],
  options: RebuildArguments,
) => {
  const wanted = chosen(names);
  if (names.length === 0 && options.all !== true)
    throw refusal('projection_unknown', 'Name the projections to rebuild, or give --all.');
  if (options.dryRun === true) {
    const rows = wanted.map(({ name, version }) => ({
      projection: name,
      version,
      would: 'fill, compare, switch',
    }));
    return printMany(rows, options, '');
  }
  await desk.upToDate();
  const done = [];
  for (const projector of wanted) {
    const line = progressLine(`Rebuilding ${projector.name}:`);
    const text = stepText(Date.now());
    const rebuilt = await rebuild(app.replay, projector, {
      ifEqual: options.ifEqual === true,
      acceptParked: options.acceptParked === true,
      tell: (step) => line.tell(text(step)),
    });
    line.end();
    const { comparison, ...row } = rebuilt;
    done.push({
      ...row,
      documents_compared: comparison?.documents ?? null,
      differences: comparison?.differences ?? null,
    });
  }
  printMany(done, options, '');
};

export const verifyAll = async (
  desk: Desk,
  names: readonly string[],
  options: { tenant?: string; json?: boolean },
) => {
  const wanted = new Set(chosen(names).map(({ name }) => name));
  await desk.upToDate();
  const scratch = await desk.app.scratch();
  const differences: unknown[] = [];
  const reports = [];
  const line = progressLine('Verifying');
  try {
    for (const live of desk.app.projecting.live)
      if (wanted.has(live.projector.name))
        reports.push(
          await verify(desk.app.replay, scratch.readModels, live, {
            ...(options.tenant === undefined ? {} : { tenantId: options.tenant }),
            onProgress: line.tell,
            onDifference: ({ tenantId, collection, key, kind, live: is, replayed }) => {
              const found = { projection: live.projector.name, kind, tenant_id: tenantId, collection, key };
              if (differences.length < MOST_SHOWN)
                differences.push({ ...found, live: is ?? null, replayed: replayed ?? null });
              if (options.json !== true)
                say(
                  `${JSON.stringify(found)}\n  live:     ${JSON.stringify(is)}\n  replayed: ${JSON.stringify(replayed)}`,
                );
            },
          }),
        );
  } finally {
    line.end();
    await scratch.remove();
  }
  if (reports.some((report) => report.differences > 0)) process.exitCode = 1;
  if (options.json === true) printJson({ projections: reports, differences });
  else
    printMany(
      reports.map((report) => ({ ...report })),
      options,
      '',
    );
};
