import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { MAIN } from './processes';

/** What is measured: a build of the program, by its `main.js`, or something to compare it with. */
export interface Build {
  readonly name: string;
  readonly main: string;
}

const BASE = process.env['BASE'] ?? '';

/** This build and, if BASE names the `main.js` of another one, that one before it. */
export const builds: readonly Build[] = [
  ...(BASE === '' ? [] : [{ name: 'base', main: resolve(BASE) }]),
  { name: 'new', main: MAIN },
];

/** The numbers on the command line: rounds and sizes. */
export const givenNumbers = process.argv
  .slice(2)
  .filter((word) => /^[0-9]+$/.test(word))
  .map(Number);

const printLoad = (when: string): void =>
  console.log(
    `load average at the ${when}: ${loadavg()
      .map((load) => load.toFixed(2))
      .join(', ')}`,
  );

/** Runs a benchmark in a folder of its own. */
export const bench = async (measure: (root: string) => Promise<void>): Promise<void> => {
  const root = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));
  printLoad('start');
  try {
    await measure(root);
  } catch (error) {
    console.error(error);
    process.exitCode = 1;
  } finally {
    printLoad('end');
    rmSync(root, { recursive: true, force: true });
  }
  // Nothing that failed may keep it running.
  process.exit();
};

export const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? NaN;

/** The number that this share of them does not exceed. */
export const at = (numbers: readonly number[], share: number): number =>
  numbers.toSorted((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(numbers.length * share))] ?? NaN;

/** Numbers by their names, which end with their units. */
export type Figures = Readonly<Record<string, number>>;

const short = (value: number): string => value.toFixed(value < 10 ? 2 : value < 1_000 ? 1 : 0);

export const printFigures = (what: string, figures: Figures): void =>
  console.log(
    `${what}: ${Object.entries(figures)
      .map(([name, value]) => `${name} ${short(value)}`)
      .join(', ')}`,
  );

const rowsOf = (measured: ReadonlyMap<string, readonly Figures[]>): readonly (readonly string[])[] => {
  const all = [...measured];
  const own = measured.get('new') ?? [];
  const others = own.length === 0 ? [] : all.filter(([name]) => name !== 'new');
  const medianIn = (runs: readonly Figures[], figure: string) =>
    median(runs.flatMap((run) => run[figure] ?? []));
  const figures = [...new Set(all.flatMap(([, runs]) => runs.flatMap(Object.keys)))];
  const cell = (value: number): string => (Number.isNaN(value) ? '' : short(value));
  return [
    [
      '',
      ...all.flatMap(([name, runs]) => [...runs.map((_, n) => `${name} ${n + 1}`), 'median']),
      ...others.map(([name]) => `new/${name}`),
    ],
    ...figures.map((figure) => [
      figure,
      ...all.flatMap(([, runs]) =>
        [...runs.map((run) => run[figure] ?? NaN), medianIn(runs, figure)].map(cell),
      ),
      ...others.map(([, runs]) => cell(medianIn(own, figure) / medianIn(runs, figure))),
    ]),
  ];
};

/** Prints every run and the medians of each build, and how the medians of this one relate to the others. */
const printTable = (what: string, measured: ReadonlyMap<string, readonly Figures[]>): void => {
  const rows = rowsOf(measured);
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = ([figure = '', ...cells]: readonly string[]): string =>
    [figure.padEnd(widths[0] ?? 0), ...cells.map((text, n) => text.padStart(widths[n + 1] ?? 0))].join('  ');
  console.log(`\n${what}\n${rows.map(line).join('\n')}\n`);
};

/** They take turns, each round in the other order. Prints every run. */
export const byTurns = async (
  what: string,
  rounds: number,
  measure: (build: Build) => Promise<Figures>,
  compared = builds,
): Promise<void> => {
  const measured = new Map<string, Figures[]>(compared.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round += 1)
    for (const build of round % 2 === 0 ? compared : compared.toReversed()) {
      const figures = await measure(build);
      measured.get(build.name)?.push(figures);
      printFigures(`${what}, ${build.name}, run ${round + 1}`, figures);
    }
  printTable(what, measured);
};
