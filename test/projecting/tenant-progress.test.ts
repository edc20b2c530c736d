import { seed, seeded } from '../support/property';
import { MISTAKES, type Mistake } from './tenant-progress-model';
import { simulate } from './tenant-progress-processes';

const RUNS = 500;

/** Each of these was found within 1,200 runs, some of them not before this one. */
const RUNS_UNTIL_NOTICED = 3_000;
const FIRST_RUNS: Partial<Record<Mistake, number>> = { joined: 1_100, eager: 600, freed: 300, root: 250 };

describe('sets in which every tenant has a progress of its own', () => {
  it(seeded('show what was shown, in order and once, whoever is killed or suspended'), () => {
    const total: Record<string, number> = {};
    for (let i = 0; i < RUNS; i += 1) {
      const { failure, counts } = simulate(seed + i);
      expect(failure).toBeUndefined();
      for (const [what, count] of Object.entries(counts)) total[what] = (total[what] ?? 0) + count;
    }
    const rare = Object.entries(total).filter(([, count]) => count < RUNS / 20);
    expect(rare).toEqual([]);
    for (const what of ['switches', 'removals', 'eager', 'followed', 'answered', 'conflicts'])
      expect(total[what]).toBeGreaterThan(2 * RUNS);
  });

  it.each(Object.entries(MISTAKES))('are broken by the mistake "%s": %s', (mistake) => {
    const first = FIRST_RUNS[mistake as Mistake] ?? 1;
    for (let i = first; i < first + RUNS_UNTIL_NOTICED; i += 1)
      if (simulate(i, mistake as Mistake).failure !== undefined) return;
    throw new Error('It was not noticed.');
  });
});
