import { monotonicMs } from '../../src/async/clock';
import { knownLiveSet } from '../../src/projecting/live-set';
import type { ReadModels } from '../../src/read-models/read-models';
import { deferred, until } from '../support/waiting';
import { firstSet, freshPlace, lines } from './harness';

/** Longer than a test may take: that there is an answer shows that nobody waited for it. */
const NEVER_MS = 600_000;

const opened = async () => {
  const readModels = await freshPlace(lines).open();
  const set = await firstSet(readModels);
  let looks = 0;
  const counted: ReadModels = {
    ...readModels,
    live: () => {
      looks += 1;
      return readModels.live();
    },
  };
  const advance = (position: string, at = set) =>
    at.advance(async () => ({ to: { position, eventId: 'e' }, writes: [], parked: 0 }));
  return { readModels, set, counted, advance, looks: () => looks };
};

describe('what a process knows of the live set', () => {
  it('is read once for requests of the same moment, and again for those that come later', async () => {
    const { readModels, set, counted, looks } = await opened();
    const [first, proceed] = [deferred(), deferred()];
    const slow: ReadModels = {
      ...counted,
      live: async () => {
        const live = await counted.live();
        first.resolve();
        await proceed.promise;
        return live;
      },
    };
    const { read } = knownLiveSet(slow);
    const together = [read(), read()];
    await first.promise;
    const next = await readModels.create('log');
    await readModels.succeed(next, set);
    const later = [read(), read()];
    proceed.resolve();
    expect((await Promise.all(together)).map(({ set: { id } }) => id)).toEqual([set.id, set.id]);
    expect((await Promise.all(later)).map(({ set: { id } }) => id)).toEqual([next.id, next.id]);
    expect(looks()).toBe(2);
  });

  it('is unavailable while there is none', async () => {
    const readModels = await freshPlace(lines).open();
    const { read } = knownLiveSet(readModels);
    await readModels.create('log');
    await expect(read()).rejects.toMatchObject({ code: 'read_models_unavailable' });
  });

  it('includes what others have projected, at one look every 10 ms for all who wait, and none otherwise', async () => {
    const { counted, advance, looks } = await opened();
    const { reached } = knownLiveSet(counted);
    const began = monotonicMs();
    const waiting = ['1', '2', '2'].map((position) => reached(position, 5_000));
    await until(() => looks() >= 3);
    await advance('2');
    expect(await Promise.all(waiting)).toEqual([true, true, true]);
    expect(looks()).toBeLessThanOrEqual((monotonicMs() - began) / 10 + 1);
    const after = looks();
    expect(await reached('2', 0)).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(looks()).toBe(after);
  });

  it('includes what this process has projected, without a look', async () => {
    const { counted, looks } = await opened();
    const { reached, moved, mayPark } = knownLiveSet(counted);
    const waiting = reached('3', 5_000);
    moved({ position: '3', parked: 0 });
    moved({ position: '2', parked: 1 });
    expect([await reached('3', 0), mayPark()]).toEqual([true, false]);
    expect(await waiting).toBe(true);
    expect(looks()).toBe(0);
  });

  it('follows a switch, and does not count on the set before', async () => {
    const { readModels, set, counted, advance } = await opened();
    const next = await readModels.create('log');
    await readModels.succeed(next, set);
    expect(await advance('5')).toBe('superseded');
    const { reached } = knownLiveSet(counted);
    const waiting = reached('5', 5_000);
    await advance('5', next);
    expect(await waiting).toBe(true);
  });

  it('is false at the deadline, even if the store fails', async () => {
    const { counted } = await opened();
    expect(await knownLiveSet(counted).reached('1', 30)).toBe(false);
    const failing: ReadModels = { ...counted, live: () => Promise.reject(new Error('away')) };
    expect(await knownLiveSet(failing).reached('1', 30)).toBe(false);
  });

  it('is false at once if the set lags more than 2 s, until it has caught up', async () => {
    const { counted, advance } = await opened();
    const { reached } = knownLiveSet(counted);
    expect(await reached('1', 2_050)).toBe(false);
    expect(await reached('2', NEVER_MS)).toBe(false);
    await advance('1');
    expect(await reached('2', NEVER_MS)).toBe(false);
    const waiting = reached('2', 5_000);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await advance('2');
    expect(await waiting).toBe(true);
  });
});
