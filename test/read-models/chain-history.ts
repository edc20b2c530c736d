import { appendFileSync, readFileSync } from 'node:fs';

/** What processes did with a chain of sets. Times are milliseconds on a clock that all processes share. */
export type Deed =
  /** Found this set live. */
  | { readonly type: 'looked'; readonly began: number; readonly ended: number; readonly set: string }
  /** Read a tenant in a set that was live after it began. */
  | {
      readonly type: 'saw';
      readonly began: number;
      readonly ended: number;
      readonly set: string;
      readonly tenantId: string;
      readonly position: number;
    }
  /** Was told that a tenant is shown up to this position. */
  | { readonly type: 'shown'; readonly ended: number; readonly tenantId: string; readonly position: number }
  /** Was told that it had moved `to`, parked or freed a tenant, or removed a set. */
  | { readonly type: 'followed' | 'parked' | 'freed' | 'removed'; readonly set: string }
  /** Was told that it had named the successor. */
  | { readonly type: 'succeeded'; readonly former: string; readonly built: string }
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

/** Nobody sees less of a tenant than was acknowledged as shown, or seen by another, before they began. */
const seenBack = (deeds: readonly Deed[]): readonly string[] => {
  const saw = ofType(deeds, 'saw').toSorted((a, b) => a.began - b.began);
  const shown = [...ofType(deeds, 'shown'), ...saw].toSorted((a, b) => a.ended - b.ended);
  const most = new Map<string, number>();
  const failures: string[] = [];
  let next = 0;
  for (const { began, tenantId, position, set } of saw) {
    for (let one = shown[next]; one !== undefined && one.ended < began; one = shown[(next += 1)])
      most.set(one.tenantId, Math.max(most.get(one.tenantId) ?? 0, one.position));
    const before = most.get(tenantId) ?? 0;
    if (position < before)
      failures.push(`${set} showed ${tenantId} at ${position}, but ${before} was shown before.`);
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

const successorsTwice = (deeds: readonly Deed[]): readonly string[] => {
  const formers = ofType(deeds, 'succeeded').map(({ former }) => former);
  const twice = formers.filter((former, i) => formers.indexOf(former) !== i);
  return twice.map((former) => `${former} has two successors.`);
};

/** Everything in a history that breaks a promise. */
export const failuresIn = (deeds: readonly Deed[]): readonly string[] => [
  ...ofType(deeds, 'failed').map(({ why }) => why),
  ...seenBack(deeds),
  ...looksAstray(deeds),
  ...successorsTwice(deeds),
];
