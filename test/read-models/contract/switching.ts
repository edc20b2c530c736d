import { pause } from '../../../src/async/clock';
import type { Position } from '../../../src/event-log/event-log';
import type { ReadModels, ReadModelSet } from '../../../src/read-models/read-models';
import { deferred } from '../../support/waiting';
import {
  ONE,
  TWO,
  LOG,
  advanceBy,
  at,
  beforeIn,
  commitOf,
  contentsOf,
  note,
  progressAt,
  put,
  type Harness,
} from './storage';

/** Sets, and how one takes the place of another. */
export const describeSwitching = (harness: Harness): void => {
  const { again, filled, built } = harness;
  const commitLate = async (set: ReadModelSet, position = 9) => {
    const known = await beforeIn(set, ONE);
    const late = [note(ONE, 'a', { text: 'late' })];
    const outcomes = await set.advance(known, async () => [await commitOf(set, ONE, position, late)]);
    return outcomes === 'superseded' ? outcomes : outcomes.get(ONE);
  };
  const liveId = async (readModels: ReadModels): Promise<string | undefined> =>
    (await readModels.live())?.set.id;

  describe('the first set', () => {
    it('does not exist in an empty storage, and looking makes none', async () => {
      expect(await harness.here.live()).toBeUndefined();
      expect(await harness.here.list()).toEqual([]);
      expect(await (await again()).list()).toEqual([]);
    });

    it('is read by nobody before it is named, although it is listed', async () => {
      const set = await harness.here.create(LOG);
      expect(await set.control()).toMatchObject({ log: LOG, marks: 0 });
      expect(await set.control()).not.toHaveProperty('to');
      expect(await set.control()).not.toHaveProperty('next');
      const there = await again();
      expect([await liveId(harness.here), await liveId(there)]).toEqual([undefined, undefined]);
      expect(await there.list()).toMatchObject([{ id: set.id, version: 'one', isLive: false }]);
    });

    it('is found by every process once it is named', async () => {
      const there = await again();
      expect(await there.live()).toBeUndefined();
      const set = await filled(note(ONE, 'a', { text: 'a' }));
      for (const readModels of [harness.here, there, await again()]) {
        const live = await readModels.live();
        expect(live).toMatchObject({ set: { id: set.id }, control: { to: at(1), log: LOG } });
        expect(await live?.set.get(ONE, 'notes', 'a')).toEqual({ text: 'a' });
        expect(await readModels.list()).toMatchObject([{ id: set.id, isLive: true }]);
      }
    });

    it('is named once: another one is refused, and naming it again changes nothing', async () => {
      const set = await filled();
      const other = await built(5);
      expect(await harness.here.succeed(other, undefined)).toBe(false);
      expect(await harness.here.succeed(set, undefined)).toBe(true);
      expect(await liveId(await again())).toBe(set.id);
    });

    it('is one of those that several processes try to name', async () => {
      const all = [harness.here, await again(), await again()];
      const sets = await Promise.all(all.map((readModels) => built(3, readModels)));
      const outcomes = await Promise.all(
        sets.map((set, i) => (all[i] as ReadModels).succeed(set, undefined)),
      );
      expect(outcomes.filter(Boolean)).toHaveLength(1);
      const winner = sets[outcomes.indexOf(true)]?.id;
      expect(await Promise.all(all.map(liveId))).toEqual(all.map(() => winner));
    });
  });

  describe('a successor', () => {
    it('takes the place of the former set in every process at once', async () => {
      const former = await filled(note(ONE, 'a', { text: 'former' }));
      const there = await again();
      const found = await there.live();
      expect(found?.set.id).toBe(former.id);
      const successor = await built(1);
      expect(await harness.here.succeed(successor, former)).toBe(true);
      for (const readModels of [there, harness.here, await again()])
        expect(await readModels.live()).toMatchObject({ set: { id: successor.id }, control: { to: at(1) } });
      const control = await found?.set.control();
      expect(control).toMatchObject({ next: successor.id, to: at(1) });
      expect(Math.abs(Date.parse(control?.supersededAt ?? '') - Date.now())).toBeLessThan(60_000);
    });

    it('leaves the former set readable and frozen', async () => {
      const former = await filled(note(ONE, 'a', { text: 'former' }));
      const there = (await (await again()).live())?.set;
      await harness.here.succeed(await built(1), former);
      const contents = await contentsOf(former);
      for (const set of [former, there]) {
        expect(await commitLate(set as ReadModelSet)).toBe('superseded');
        expect(await set?.advance(new Map(), async () => [], at(9))).toBe('superseded');
        expect(await set?.get(ONE, 'notes', 'a')).toEqual({ text: 'former' });
      }
      expect(await contentsOf(former)).toEqual(contents);
    });

    it('is refused if the former set is further', async () => {
      const former = await filled();
      await advanceBy(former, 7);
      expect(await harness.here.succeed(await built(6), former)).toBe(false);
      expect(await harness.here.succeed(await harness.here.create(LOG), former)).toBe(false);
      expect(await former.control()).not.toHaveProperty('next');
      expect(await liveId(await again())).toBe(former.id);
    });

    it('may be behind if the log no longer holds the events of the former set', async () => {
      const former = await filled();
      await advanceBy(former, 7);
      const behind = await built(2);
      expect(await harness.here.succeed(behind, former, { evenIfBehind: true })).toBe(true);
      expect(await liveId(await again())).toBe(behind.id);
    });

    it('is named once, and naming it again succeeds', async () => {
      const former = await filled();
      const [first, second] = [await built(1), await built(1)];
      expect(await harness.here.succeed(first, former)).toBe(true);
      expect(await harness.here.succeed(first, former)).toBe(true);
      expect(await harness.here.succeed(second, former)).toBe(false);
      expect(await harness.here.succeed(second, former, { evenIfBehind: true })).toBe(false);
      expect(await liveId(await again())).toBe(first.id);
    });

    it('is one of those that several processes try to name', async () => {
      await filled();
      const all = [harness.here, await again(), await again()];
      const outcomes = await Promise.all(
        all.map(async (readModels) => {
          const successor = await built(1, readModels);
          const live = await readModels.live();
          return (await readModels.succeed(successor, live?.set)) ? successor.id : undefined;
        }),
      );
      // A process that looked after another one had switched has followed that one.
      const ends = outcomes.filter((id) => id !== undefined);
      expect(ends.length).toBeGreaterThanOrEqual(1);
      const live = await Promise.all(all.map(liveId));
      expect(new Set(live).size).toBe(1);
      expect(ends).toContain(live[0]);
    });

    it('is never behind what the former set committed meanwhile', async () => {
      const former = await filled();
      const there = await again();
      const set = (await there.live())?.set;
      const work = async (): Promise<number> => {
        for (let position = 2; position <= 100; position += 1) {
          if ((await set?.advance(new Map(), async () => [], at(position))) === 'superseded')
            return position - 1;
          await new Promise((resolve) => setImmediate(resolve));
        }
        return 100;
      };
      const working = work();
      let last: string | undefined;
      while (last === undefined) {
        const { to } = await former.control();
        const successor = await built(Number(to?.position));
        if (await harness.here.succeed(successor, former)) last = successor.id;
      }
      const committed = await working;
      const live = await there.live();
      expect(live?.set.id).toBe(last);
      expect((live?.control.to?.position ?? '') >= at(committed).position).toBe(true);
    });
  });

  describe('a switch', () => {
    const commitTo = async (set: ReadModelSet, tenantId: string, position: number): Promise<void> => {
      const known = await beforeIn(set, tenantId);
      await set.advance(known, async () => [await commitOf(set, tenantId, position)]);
    };

    it('is refused if any tenant of the former set is further than its successor', async () => {
      const former = await filled();
      await commitTo(former, TWO, 8);
      expect((await former.control()).to).toEqual(at(1));
      expect(await harness.here.succeed(await built(7), former)).toBe(false);
      await commitTo(former, TWO, 9);
      expect(await harness.here.succeed(await built(9), former)).toBe(true);
    });

    it('has the successor follow to the furthest event ever committed, and then it is the live one', async () => {
      const former = await filled();
      await commitTo(former, TWO, 8);
      await advanceBy(former, 3);
      const successor = await built(2);
      const asked: (Position | undefined)[] = [];
      const follow = async (furthest: Position | undefined): Promise<void> => {
        asked.push(furthest);
        await advanceBy(successor, 8, note(TWO, 'followed', {}));
      };
      expect(await harness.here.succeed(successor, former, { follow })).toBe(true);
      expect(asked).toEqual([at(8).position]);
      const other = await harness.there();
      expect(other.id).toBe(successor.id);
      await advanceBy(other, 10, note(TWO, 'followed', { text: 'again' }));
      await advanceBy(successor, 11, note(TWO, 'followed', { text: 'last' }));
      expect(await other.get(TWO, 'notes', 'followed')).toEqual({ text: 'last' });
    });

    it('asks nobody to follow if the set is superseded already, or the first', async () => {
      const follow = async (): Promise<never> => {
        throw new Error('It was asked.');
      };
      const former = await filled();
      const [first, second] = [await built(1), await built(1)];
      expect(await harness.here.succeed(first, former)).toBe(true);
      expect(await harness.here.succeed(second, former, { follow })).toBe(false);
      expect(await harness.here.succeed(first, former, { follow })).toBe(true);
    });

    it('that its builder refuses changes nothing, and the set is written as before', async () => {
      const former = await filled(note(ONE, 'a', {}));
      const other = await harness.there();
      const successor = await built(1);
      const refused = new Error('The differences are not accepted.');
      const follow = () => Promise.reject(refused);
      await expect(harness.here.succeed(successor, former, { follow })).rejects.toBe(refused);
      expect(await former.control()).not.toHaveProperty('next');
      expect(await liveId(await again())).toBe(former.id);
      await advanceBy(former, 2, note(ONE, 'a', { text: 'here' }));
      await advanceBy(other, 3, note(ONE, 'a', { text: 'there' }));
      await advanceBy(successor, 3, note(ONE, 'a', { text: 'rebuilt' }));
      expect(await harness.here.succeed(successor, former)).toBe(true);
    });

    it.each([
      ['go on where they were if it fails', false],
      ['find the set superseded if it succeeds', true],
    ])('lets others wait, who %s', async (_, succeeds) => {
      const former = await filled(note(ONE, 'a', {}));
      const others = [await harness.there(), await harness.there()];
      const successor = await built(1);
      const [reached, release] = [deferred(), deferred()];
      const follow = async (): Promise<void> => {
        reached.resolve();
        await release.promise;
        if (!succeeds) throw new Error('refused');
      };
      const switched = harness.here.succeed(successor, former, { follow }).catch(() => 'refused');
      await reached.promise;
      let settled = 0;
      const late = others.map(async (set, i) => {
        const known = await beforeIn(set, [ONE, TWO][i] as string);
        const [tenantId = ''] = known.keys();
        const outcomes = await set.advance(known, async () => [await commitOf(set, tenantId, 5 + i)]);
        settled += 1;
        return outcomes === 'superseded' ? outcomes : outcomes.get(tenantId);
      });
      try {
        await pause(200);
        expect(settled).toBe(0);
        expect(await others[0]?.get(ONE, 'notes', 'a')).toEqual({});
      } finally {
        release.resolve();
      }
      expect(await switched).toBe(succeeds ? true : 'refused');
      const outcome = succeeds ? 'superseded' : 'done';
      expect(await Promise.all(late)).toEqual([outcome, outcome]);
      expect(await former.progress([ONE, TWO])).toEqual(
        succeeds ? [progressAt(1), undefined] : [progressAt(5), progressAt(6)],
      );
    });

    it('loses nothing that others commit while it is made', async () => {
      let former = await filled();
      const committed = new Map<string, number>();
      let isOver = false;
      const write = async (readModels: ReadModels, i: number): Promise<void> => {
        const tenantId = `tenant ${i}`;
        for (let position = 2; !isOver; position += 1) {
          await pause(1);
          const set = (await readModels.live())?.set as ReadModelSet;
          const known = await beforeIn(set, tenantId);
          const outcomes = await set.advance(known, async () => [await commitOf(set, tenantId, position)]);
          if (outcomes !== 'superseded' && outcomes.get(tenantId) === 'done')
            committed.set(tenantId, position);
        }
      };
      const processes = [harness.here, await again(), await again()];
      const writing = Promise.all(processes.map(write));
      const builder = await again();
      try {
        for (let round = 0; round < 3; round += 1) {
          await pause(100);
          const successor = await builder.create(LOG);
          await advanceBy(successor, 1);
          const follow = async (furthest: Position | undefined): Promise<void> => {
            const tenantIds = processes.map((_, i) => `tenant ${i}`);
            const shown = await former.progress(tenantIds);
            const before = await beforeIn(successor, ...tenantIds);
            const work = async () =>
              Promise.all(
                tenantIds.map(async (tenantId, i) => ({
                  ...(await commitOf(successor, tenantId, 1)),
                  progress: shown[i] ?? progressAt(0),
                })),
              );
            await successor.advance(before, work, { ...at(1), position: furthest ?? '' });
          };
          expect(await builder.succeed(successor, former, { follow })).toBe(true);
          former = successor;
        }
      } finally {
        isOver = true;
        await writing;
      }
      const live = (await builder.live())?.set as ReadModelSet;
      expect(live.id).toBe(former.id);
      const tenantIds = [...committed.keys()];
      const shown = (await live.progress(tenantIds)).map((one) => one?.tenant ?? 0);
      tenantIds.forEach((tenantId, i) => expect(shown[i]).toBeGreaterThanOrEqual(committed.get(tenantId)!));
    });
  });

  it('a chain is followed to its end from wherever a process was last', async () => {
    let former = await filled();
    const remembers = await again();
    expect(await liveId(remembers)).toBe(former.id);
    for (let i = 0; i < 4; i += 1) {
      const successor = await built(i + 2);
      expect(await harness.here.succeed(successor, former)).toBe(true);
      former = successor;
    }
    expect([await liveId(remembers), await liveId(await again())]).toEqual([former.id, former.id]);
    expect((await remembers.list()).filter(({ isLive }) => isLive)).toMatchObject([{ id: former.id }]);
  });

  it('each version has its own chain, and all are listed', async () => {
    const set = await filled();
    const other = await again({ version: 'two', collections: [{ name: 'counts', indexes: {} }] });
    expect(await other.live()).toBeUndefined();
    const second = await other.create(LOG);
    await advanceBy(second, 1, put(ONE, 'counts', 'n', { count: 2 }));
    expect(await other.succeed(second, undefined)).toBe(true);
    expect([await liveId(harness.here), await liveId(other)]).toEqual([set.id, second.id]);
    const listed = (await harness.here.list()).toSorted((a, b) => (a.version < b.version ? -1 : 1));
    expect(listed).toMatchObject([
      { id: set.id, version: 'one', isLive: true },
      { id: second.id, version: 'two', isLive: true, control: { to: at(1), log: LOG } },
    ]);
  });

  it('everything survives closing and opening', async () => {
    const former = await filled(note(ONE, 'a', { text: 'a' }));
    const successor = await built(4);
    await harness.here.succeed(successor, former);
    await harness.closeAll();
    const live = await (await again()).live();
    expect(live).toMatchObject({ set: { id: successor.id }, control: { to: at(4), log: LOG } });
    expect(await live?.set.get(ONE, 'counts', 'n')).toEqual({ count: 4 });
  });
};
