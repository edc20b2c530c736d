import Sequencer from '@jest/test-sequencer';

/** They start servers and other processes, or wait. */
const LONG =
  /\/dist\/test\/((stories|cli|http)\/|start\.|docs\/(readme|investigations)|event-log\/sqlite|stores\/(crash|eventstoredb|mongodb|memory|package|portal\/(pages|explorer)))/;

type Tests = Parameters<Sequencer['sort']>[0];

/**
 * Runs the long files first, so that all workers finish together. Jest knows how long each takes only from an earlier
 * run; without one, as in CI, it goes by file size, and some of the longest-running files are short.
 */
export default class extends Sequencer {
  override sort(tests: Tests): Tests {
    // oxlint-disable-next-line unicorn/no-array-sort -- this is no array
    const sorted = super.sort(tests) as Tests;
    const isLong = ({ path }: Tests[number]): boolean => LONG.test(path);
    return [...sorted.filter(isLong), ...sorted.filter((test) => !isLong(test))];
  }
}
