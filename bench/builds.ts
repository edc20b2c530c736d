import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { MAIN } from './processes';

/** A build of the program, by its `main.js`. */
export interface Build {
  readonly name: 'base' | 'new';
  readonly main: string;
}

const BASE = process.env['BASE'] ?? '';

/** This build and, if BASE names the `main.js` of another one, that one before it. */
export const builds: readonly Build[] = [
  ...(BASE === '' ? [] : [{ name: 'base', main: resolve(BASE) } as const]),
  { name: 'new', main: MAIN },
];

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

const medians = (runs: readonly Figures[]): Figures =>
  Object.fromEntries(
    Object.keys(runs[0] ?? {}).map((name) => [name, median(runs.map((run) => run[name] ?? NaN))]),
  );

/** Prints the medians of each build, and how they relate. */
export const printMedians = (what: string, measured: ReadonlyMap<string, readonly Figures[]>): void => {
  for (const [name, runs] of measured)
    printFigures(`${what}, ${name}, median of ${runs.length}`, medians(runs));
  const [base, own] = [measured.get('base'), measured.get('new')];
  if (base === undefined || own === undefined) return;
  const [before, after] = [medians(base), medians(own)];
  const ratios = Object.keys(after).map((name) => [name, (after[name] ?? NaN) / (before[name] ?? NaN)]);
  printFigures(`${what}, new to base`, Object.fromEntries(ratios) as Figures);
};

/** The builds take turns, each round in the other order. Prints every run. */
export const byTurns = async (
  what: string,
  rounds: number,
  measure: (build: Build) => Promise<Figures>,
): Promise<void> => {
  const measured = new Map<string, Figures[]>(builds.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round += 1)
    for (const build of round % 2 === 0 ? builds : builds.toReversed()) {
      const figures = await measure(build);
      measured.get(build.name)?.push(figures);
      printFigures(`${what}, ${build.name}, run ${round + 1}`, figures);
    }
  printMedians(what, measured);
};
