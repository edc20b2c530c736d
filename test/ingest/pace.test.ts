import { pace } from '../../src/ingest/pace';
import { deferred } from '../support/waiting';

/** Read models that show what the test sets, on a clock that the test moves. */
const slowReadModels = () => {
  const asked: string[] = [];
  const gates = new Map<string, ReturnType<typeof deferred<boolean>>>();
  const gateOf = (position: string) => {
    const gate = gates.get(position) ?? deferred<boolean>();
    gates.set(position, gate);
    return gate;
  };
  let time = 0;
  return {
    asked,
    reached: (position: string): Promise<boolean> => {
      asked.push(position);
      return gateOf(position).promise;
    },
    now: () => time,
    show: (position: string, afterMs: number, isShown = true): void => {
      time += afterMs;
      gateOf(position).resolve(isShown);
    },
  };
};

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Appends batches of 500, each shown after some time, and returns how many were ahead when it first had to wait. */
const batchesAhead = async (batches: number, shownAfterMs: number): Promise<readonly number[]> => {
  const models = slowReadModels();
  const one: ReturnType<typeof pace> = pace(models.reached, models.now);
  const ahead: number[] = [];
  let shown = 0;
  for (let batch = 1; batch <= batches; batch += 1) {
    let isDone = false;
    const done = one.appended(String(batch), 500).then(() => (isDone = true));
    await turn();
    while (!isDone) {
      ahead.push(batch - shown);
      shown += 1;
      models.show(String(shown), shownAfterMs);
      await turn();
    }
    await done;
  }
  return ahead;
};

describe('the pace of ingest', () => {
  it('does not wait for the first facts', async () => {
    const { reached, asked, now } = slowReadModels();
    await pace(reached, now).appended('1', 500);
    expect(asked).toEqual([]);
  });

  it('waits for the oldest facts if too many are ahead', async () => {
    const models = slowReadModels();
    const { appended } = pace(models.reached, models.now);
    await appended('1', 500);
    let isDone = false;
    const second = appended('2', 500).then(() => (isDone = true));
    await turn();
    expect({ isDone, asked: models.asked }).toEqual({ isDone: false, asked: ['1'] });
    models.show('1', 10);
    await second;
  });

  it('lets more facts go ahead while they are shown in time, up to a maximum', async () => {
    const ahead = await batchesAhead(200, 1);
    expect(ahead[0]).toBe(2);
    expect(Math.max(...ahead)).toBe(21);
  });

  it('lets few facts go ahead while they are shown late', async () => {
    expect(Math.max(...(await batchesAhead(50, 600)))).toBe(2);
  });

  it('waits for everything at the end, and reports whether it is shown', async () => {
    for (const isShown of [true, false]) {
      const models = slowReadModels();
      const { appended, finished } = pace(models.reached, models.now);
      await appended('1', 100);
      await appended('2', 100);
      models.show('1', 1, false);
      models.show('2', 1, isShown);
      expect(await finished()).toBe(isShown);
      expect(models.asked).toEqual(['1', '2']);
    }
    const { reached, now } = slowReadModels();
    expect(await pace(reached, now).finished()).toBe(true);
  });
});
