import { at, id, note, ONE, turn, TWO, type Harness } from './harness';

/** What is stored about generations, and what processes tell each other about them. */
export const registryContract = (harness: Harness): void => {
  const { again, openIn } = harness;

  describe('requests to retry parked tenants', () => {
    it('are counted, and visible to other processes', async () => {
      const { readModels } = harness.store;
      const other = await again();
      expect(await readModels.retryRequests()).toEqual({ count: 0 });
      await readModels.requestRetry();
      await Promise.all([readModels.requestRetry(), other.requestRetry()]);
      for (const models of [readModels, other, await again()])
        expect(await models.retryRequests()).toEqual({ count: 3 });
    });

    it('name the tenant of the last one', async () => {
      const { readModels } = harness.store;
      const other = await again();
      await readModels.requestRetry(ONE);
      await other.requestRetry(TWO);
      expect(await readModels.retryRequests()).toEqual({ count: 2, tenantId: TWO });
      await readModels.requestRetry();
      expect(await other.retryRequests()).toEqual({ count: 3 });
    });
  });

  describe('a pointer', () => {
    it('is missing at first', async () => {
      expect(await harness.store.readModels.pointer('notes', 1)).toBeUndefined();
    });

    it('is set once, moved, and visible to other processes', async () => {
      const { readModels } = harness.store;
      expect(await readModels.point('notes', 1, { live: 1 }, undefined)).toBe(true);
      expect(await readModels.pointer('notes', 1)).toEqual({ live: 1 });
      expect(await readModels.point('notes', 1, { live: 2, previous: 1 }, { live: 1 })).toBe(true);
      expect(await (await again()).pointer('notes', 1)).toEqual({ live: 2, previous: 1 });
    });

    it.each([
      ['there is one already', { live: 2, previous: 1 }, undefined],
      ['another one is live', { live: 2, previous: 1 }, { live: 1 }],
      ['another one was live before', { live: 2, previous: 1 }, { live: 2 }],
      ['none was live before', { live: 2 }, { live: 2, previous: 1 }],
    ])('is not moved when %s', async (_, now, believed) => {
      const { readModels } = harness.store;
      await readModels.point('notes', 1, now, undefined);
      expect(await readModels.point('notes', 1, { live: 3 }, believed)).toBe(false);
      expect(await readModels.pointer('notes', 1)).toEqual(now);
    });

    it('is not moved when there is none', async () => {
      expect(await harness.store.readModels.point('notes', 1, { live: 2 }, { live: 1 })).toBe(false);
      expect(await harness.store.readModels.pointer('notes', 1)).toBeUndefined();
    });

    it('is separate for each name and version', async () => {
      const { readModels } = harness.store;
      await readModels.point('notes', 1, { live: 1 }, undefined);
      await readModels.point('notes', 2, { live: 5 }, undefined);
      await readModels.point('tags', 1, { live: 7 }, undefined);
      expect(await readModels.pointer('notes', 1)).toEqual({ live: 1 });
      expect(await readModels.pointer('notes', 2)).toEqual({ live: 5 });
      expect(await readModels.pointer('tags', 1)).toEqual({ live: 7 });
    });

    it('is moved by only one of many at once', async () => {
      const stores = [harness.store.readModels, await again()];
      const outcomes = await Promise.all(
        [1, 2, 3, 4].map((live) => stores[live % 2]!.point('notes', 1, { live }, undefined)),
      );
      expect(outcomes.filter(Boolean)).toHaveLength(1);
      expect(await stores[0]!.pointer('notes', 1)).toEqual({ live: outcomes.indexOf(true) + 1 });
    });
  });

  it('the registry tells by its token whether pointers may have changed, if it has one', async () => {
    const { readModels } = harness.store;
    const other = await again();
    const { pointersToken } = readModels;
    if (pointersToken === undefined) return;
    const tokens = new Set([pointersToken()]);
    for (const [models, to, believed] of [
      [readModels, { live: 1 }, undefined],
      [other, { live: 2, previous: 1 }, { live: 1 }],
      [readModels, { live: 1, previous: 2 }, { live: 2, previous: 1 }],
    ] as const) {
      expect(await models.point('notes', 1, to, believed)).toBe(true);
      tokens.add(pointersToken());
    }
    expect(await other.markRemoved(id('notes', 1, 2), { held: 'work', live: true })).toBe(true);
    tokens.add(pointersToken());
    expect(tokens.size).toBe(5);
    expect(pointersToken()).toBe([...tokens].at(-1));
  });

  describe('a generation that was live', () => {
    const LONG = 600_000;

    it('counts as recently live, for every process, for as long as requested', async () => {
      const { readModels } = harness.store;
      const other = await again();
      expect(await readModels.liveLately('notes', 1, LONG)).toEqual([]);
      await readModels.point('notes', 1, { live: 1 }, undefined);
      expect(await readModels.liveLately('notes', 1, LONG)).toEqual([]);
      await readModels.point('notes', 1, { live: 2, previous: 1 }, { live: 1 });
      await readModels.point('notes', 1, { live: 3, previous: 2 }, { live: 2, previous: 1 });
      for (const models of [readModels, other, await again()])
        expect(new Set(await models.liveLately('notes', 1, LONG))).toEqual(new Set([1, 2]));
      expect(await other.liveLately('notes', 1, 0)).toEqual([]);
      expect(await other.liveLately('notes', 2, LONG)).toEqual([]);
      expect(await other.liveLately('tags', 1, LONG)).toEqual([]);
      while ((await other.liveLately('notes', 1, 50)).length > 0) await turn();
      expect(await other.liveLately('notes', 1, LONG)).toHaveLength(2);
    });

    it.each([
      [-7_200_000, []],
      [-30_000, [1]],
      [30_000, [1]],
      [7_200_000, []],
    ])('counts as recently live with a clock that is %s ms ahead: %j', async (aheadMs, expected) => {
      const { readModels } = harness.store;
      await readModels.point('notes', 1, { live: 1 }, undefined);
      await readModels.point('notes', 1, { live: 2, previous: 1 }, { live: 1 });
      const other = await again();
      const nowMs = Date.now;
      const clock = jest.spyOn(Date, 'now').mockImplementation(() => nowMs() + aheadMs);
      try {
        expect(await other.liveLately('notes', 1, LONG)).toEqual(expected);
      } finally {
        clock.mockRestore();
      }
    });

    it('counts as recently live even if it is to be removed: others may still read it', async () => {
      const { readModels } = harness.store;
      await readModels.point('notes', 1, { live: 1 }, undefined);
      await readModels.point('notes', 1, { live: 2, previous: 1 }, { live: 1 });
      expect(await readModels.markRemoved(id('notes'), { held: 'work', live: true })).toBe(true);
      for (const models of [readModels, await again()])
        expect(await models.liveLately('notes', 1, LONG)).toEqual([1]);
    });

    it('does not count as recently live while it is live again', async () => {
      const { readModels } = harness.store;
      await readModels.point('notes', 1, { live: 1 }, undefined);
      await readModels.point('notes', 1, { live: 2, previous: 1 }, { live: 1 });
      await readModels.point('notes', 1, { live: 1, previous: 2 }, { live: 2, previous: 1 });
      expect(await readModels.liveLately('notes', 1, LONG)).toEqual([2]);
      await readModels.point('notes', 1, { live: 1 }, { live: 1, previous: 2 });
      expect(await readModels.liveLately('notes', 1, LONG)).toEqual([2]);
    });
  });

  describe('removing a generation', () => {
    const LONG = 600_000;
    const unless = { held: 'work', live: true };
    const two = id('notes', 1, 2);
    const pointed = (live: number, previous?: number) =>
      previous === undefined ? { live } : { live, previous };

    it('clears the pointer to it, and nothing can point at it again', async () => {
      const { readModels } = harness.store;
      const other = await again();
      await readModels.point('notes', 1, { live: 1, previous: 2 }, undefined);
      expect(await other.isRemoved(two)).toBe(false);
      expect(await readModels.markRemoved(two, unless)).toBe(true);
      for (const models of [readModels, other, await again()]) {
        expect(await models.isRemoved(two)).toBe(true);
        expect(await models.pointer('notes', 1)).toEqual({ live: 1 });
        expect(await models.point('notes', 1, { live: 2, previous: 1 }, { live: 1 })).toBe(false);
        expect(await models.point('notes', 1, { live: 3, previous: 2 }, { live: 1 })).toBe(false);
      }
      expect(await readModels.point('notes', 1, { live: 3, previous: 1 }, { live: 1 })).toBe(true);
      expect(await readModels.markRemoved(two, unless)).toBe(true);
      expect(await other.isRemoved(id('notes', 2, 2))).toBe(false);
      expect(await other.isRemoved(id('notes', 1, 22))).toBe(false);
    });

    it('is refused while it is live, and changes nothing', async () => {
      const { readModels } = harness.store;
      await readModels.point('notes', 1, { live: 2, previous: 1 }, undefined);
      expect(await readModels.markRemoved(two, unless)).toBe(false);
      expect(await readModels.isRemoved(two)).toBe(false);
      expect(await readModels.pointer('notes', 1)).toEqual({ live: 2, previous: 1 });
      const back = { live: 1, previous: 2 };
      expect(await readModels.point('notes', 1, back, { live: 2, previous: 1 })).toBe(true);
      expect(await readModels.point('notes', 1, { live: 2, previous: 1 }, back)).toBe(true);
    });

    it('is refused while somebody holds the lease, and changes nothing', async () => {
      const { readModels } = harness.store;
      const other = await again();
      await readModels.point('notes', 1, { live: 1, previous: 2 }, undefined);
      await other.lease('work', 'holder one', LONG);
      expect(await readModels.markRemoved(two, unless)).toBe(false);
      expect(await other.markRemoved(two, { ...unless, live: false })).toBe(false);
      expect(await readModels.isRemoved(two)).toBe(false);
      expect(await readModels.pointer('notes', 1)).toEqual({ live: 1, previous: 2 });
      await other.release('work', 'holder one');
      await other.lease('play', 'holder one', LONG);
      expect(await readModels.markRemoved(two, unless)).toBe(true);
    });

    it('also removes its pointer if being live does not matter', async () => {
      const { readModels } = harness.store;
      await readModels.point('notes', 1, { live: 2, previous: 1 }, undefined);
      expect(await readModels.markRemoved(two, { held: 'work', live: false })).toBe(true);
      expect(await readModels.pointer('notes', 1)).toBeUndefined();
      expect(await readModels.isRemoved(two)).toBe(true);
      expect(await readModels.point('notes', 1, { live: 2 }, undefined)).toBe(false);
      expect(await readModels.point('notes', 1, { live: 1 }, undefined)).toBe(true);
    });

    it('and switching to it exclude each other, whichever comes first', async () => {
      const stores = [harness.store.readModels, await again()] as const;
      for (let round = 0; round < 20; round += 1) {
        const raced = id('notes', round + 1, 2);
        await stores[0].point('notes', round + 1, pointed(1, 2), undefined);
        const [switched, removed] = await Promise.all([
          stores[round % 2 === 0 ? 0 : 1].point('notes', round + 1, pointed(2, 1), pointed(1, 2)),
          stores[round % 3 === 0 ? 0 : 1].markRemoved(raced, unless),
        ]);
        expect(switched).toBe(!removed);
        expect(await stores[1].isRemoved(raced)).toBe(removed);
        expect(await stores[1].pointer('notes', round + 1)).toEqual(removed ? pointed(1) : pointed(2, 1));
      }
    });

    it('keeps it usable until it is dropped, and prevents it from being created again', async () => {
      const { readModels } = harness.store;
      const generation = await openIn(readModels, two);
      await generation.commit(0, at(1), [note(ONE, 'a', { text: 'kept' })]);
      await readModels.markRemoved(two, unless);
      const other = await again();
      expect(await (await openIn(other, two)).reader.get(ONE, 'notes', 'a')).toEqual({ text: 'kept' });
      await other.drop(two);
      expect(await generation.reader.get(ONE, 'notes', 'a')).toEqual({ text: 'kept' });
      for (const models of [other, await again()])
        await expect(openIn(models, two)).rejects.toMatchObject({ code: 'generation_removed' });
      expect(await readModels.generations()).toEqual([]);
      await openIn(other, id('notes', 1, 3));
    });
  });

  describe('generation numbers', () => {
    it('are given out once each, whoever asks', async () => {
      const stores = [harness.store.readModels, await again()];
      const numbers = await Promise.all(
        Array.from({ length: 12 }, (_, i) => stores[i % 2]!.nextNumber('notes', 1)),
      );
      expect(new Set(numbers).size).toBe(12);
      expect(Math.min(...numbers)).toBeGreaterThan(1);
    });

    it('are never those of existing, dropped or removed generations', async () => {
      const { readModels } = harness.store;
      await openIn(readModels, id('notes', 1, 5));
      const first = await readModels.nextNumber('notes', 1);
      expect(first).toBe(6);
      await openIn(readModels, id('notes', 1, first));
      await readModels.drop(id('notes', 1, first));
      expect(await readModels.nextNumber('notes', 1)).toBe(7);
      await readModels.markRemoved(id('notes', 1, 9), { held: 'work', live: true });
      expect(await (await again()).nextNumber('notes', 1)).toBe(10);
      expect(await readModels.nextNumber('notes', 2)).toBe(2);
    });
  });
};
