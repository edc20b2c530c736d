import { randomUUID } from 'node:crypto';
import { pause } from '../../src/clock';
import type { EventLog, LoggedEvent } from '../../src/event-log/event-log';
import { BATCH_EVENTS, fedBatch } from '../../src/projecting/pages';
import { project } from '../../src/projecting/projection-run';
import type { Generation } from '../../src/read-models/read-models';
import { lines } from './replay';
import { runOf, streams } from './world';

/** The decision to put off is made just before the commit; whatever stops the process in between is not its fault. */
const SLACK_MS = 60;
const NOW = '2026-01-01T00:00:00.000Z';

/** A store that takes its time, and notes how long each commit that is put off follows the last one that was not. */
const slowStore = () => {
  const putOffAfter: number[] = [];
  let shown = 0;
  let shownAt = performance.now();
  const generation = {
    id: { projection: 'lines', version: 1, generation: 1 },
    control: async () => ({ n: 0, log: 'log' }),
    load: async () => [],
    settle: async () => undefined,
    commit: async (_n: number, _to: unknown, _writes: unknown, more = false) => {
      if (more) putOffAfter.push(performance.now() - shownAt);
      else [shown, shownAt] = [shown + 1, performance.now()];
      await pause(5);
      return true;
    },
  } as unknown as Generation;
  return { generation, putOffAfter, shown: () => shown };
};

const fullBatch = (from: number, recordedAt: string): readonly LoggedEvent[] =>
  Array.from({ length: BATCH_EVENTS }, (_, i) => ({
    id: randomUUID(),
    type: 'Something',
    data: {},
    metadata: {},
    stream: 'somebody-elses',
    revision: from + i,
    position: String(from + i).padStart(16, '0'),
    recordedAt,
  }));

describe('commits while more is at hand', () => {
  it.each([
    ['150 ms', 'that has just happened', NOW, 150, 150],
    ['one second', 'that has been in the log for a while', '2025-12-31T23:59:54.000Z', 150, 1_000],
    ['not at all', 'where nothing may be', NOW, 0, 0],
  ])('are put off for %s at most, of what %s', async (_, __, recordedAt, showWithinMs, longest) => {
    const { generation, putOffAfter, shown } = slowStore();
    const run = { ...runOf(lines, generation, undefined as unknown as EventLog, '1', NOW), showWithinMs };
    await project(run, async function* () {
      for (let from = 0; shown() < 3; from += BATCH_EVENTS)
        yield fedBatch(fullBatch(from, recordedAt), streams);
    });
    expect(Math.max(0, ...putOffAfter)).toBeLessThan(longest + SLACK_MS);
    expect(Math.max(0, ...putOffAfter)).toBeGreaterThanOrEqual(longest / 2);
  });
});
