import { appendFileSync, readFileSync } from 'node:fs';

/** What processes did with a chain of sets. Times are milliseconds on a clock that all processes share. */
export type Deed =
  /** Found this set live, at this position. */
  | {
      readonly type: 'looked';
      readonly began: number;
      readonly ended: number;
      readonly set: string;
      readonly to: number;
    }
  /** Was told that it had advanced a live set to this position. */
  | {
      readonly type: 'advanced';
      readonly ended: number;
      readonly set: string;
      readonly n: number;
      readonly to: number;
    }
  /** Was told that it had named the successor. */
  | { readonly type: 'succeeded'; readonly former: string; readonly built: string }
  | { readonly type: 'removed'; readonly set: string }
  /** Found something that must not be. */
  | { readonly type: 'failed'; readonly why: string };

export const sharedMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/** Survives a kill right afterwards. */
export const record = (file: string, deed: Deed): void => appendFileSync(file, `${JSON.stringify(deed)}\n`);

export const recordedIn = (file: string): readonly Deed[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Deed);

export const ofType = <T extends Deed['type']>(deeds: readonly Deed[], type: T) =>
  deeds.filter((deed): deed is Extract<Deed, { type: T }> => deed.type === type);

/** A look shows all that was acknowledged, and all that another look has shown, before it began. */
const looksBack = (deeds: readonly Deed[]): readonly string[] => {
  const looks = ofType(deeds, 'looked').toSorted((a, b) => a.began - b.began);
  const shown = [...ofType(deeds, 'advanced'), ...looks].toSorted((a, b) => a.ended - b.ended);
  const failures: string[] = [];
  let [most, next] = [0, 0];
  for (const { began, to, set } of looks) {
    for (let one = shown[next]; one !== undefined && one.ended < began; one = shown[(next += 1)])
      most = Math.max(most, one.to);
    if (to < most) failures.push(`A look found ${set} at ${to}, but ${most} was shown before it began.`);
  }
  return failures;
};

/** Nobody finds a set live again after its successor was found. */
const looksAstray = (deeds: readonly Deed[]): readonly string[] => {
  const seen = new Map<string, { first: number; last: number }>();
  for (const { set, began, ended } of ofType(deeds, 'looked')) {
    const { first, last } = seen.get(set) ?? { first: Infinity, last: -Infinity };
    seen.set(set, { first: Math.min(first, ended), last: Math.max(last, began) });
  }
  const sets = [...seen];
  return sets.flatMap(([one, a], i) =>
    sets
      .slice(i + 1)
      .filter(([, b]) => a.first < b.last && b.first < a.last)
      .map(([other]) => `${one} and ${other} were both live, each after the other.`),
  );
};

const doubles = (what: string, all: readonly (string | number)[]): readonly string[] => {
  const found = all.filter((one, i) => all.indexOf(one) !== i);
  return found.map((one) => `${what}: ${one}`);
};

/** Everything in a history that breaks a promise. */
export const failuresIn = (deeds: readonly Deed[]): readonly string[] => [
  ...ofType(deeds, 'failed').map(({ why }) => why),
  ...looksBack(deeds),
  ...looksAstray(deeds),
  ...doubles(
    'Acknowledged twice: position',
    ofType(deeds, 'advanced').map(({ to }) => to),
  ),
  ...doubles(
    'Two successors of',
    ofType(deeds, 'succeeded').map(({ former }) => former),
  ),
];
