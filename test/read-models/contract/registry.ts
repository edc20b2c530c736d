import { at, collections, id, LOG, note, ONE, TWO, type Harness } from './harness';
import { createAndOpen, storedOf } from '../../support/generations';
import type { GenerationId, ReadModels } from '../../../src/read-models/read-models';

/** What is stored about generations, and what processes tell each other about them. */
export const registryContract = (harness: Harness): void => {
  const { again, openIn } = harness;
  const [one, two, three] = ['one', 'two', 'three'].map((name) => id('notes', 1, name)) as [
    GenerationId,
    GenerationId,
    GenerationId,
  ];
  const create = async (...ids: GenerationId[]): Promise<ReadModels> => {
    for (const each of ids) await harness.store.readModels.create(each, collections, LOG);
    return harness.store.readModels;
  };
  const liveIn = async (models: ReadModels) =>
    (await models.state()).generations.filter(({ isLive }) => isLive).map(({ generation }) => generation);
  const leftIn = async (models: ReadModels, withinMs = 600_000) =>
    (await models.state()).generations
      .filter(({ leftMs }) => (leftMs ?? Infinity) < withinMs)
      .map(({ generation }) => generation);

  it('the registry is empty at first, and looking at it creates nothing', async () => {
    const empty = { generations: [], leases: new Map(), retries: { count: 0 } };
    expect(await harness.store.readModels.state()).toEqual(empty);
    expect(await (await again()).state()).toEqual(empty);
  });

  describe('requests to retry parked tenants', () => {
    it('are counted, visible to other processes, and name the tenant of the last one', async () => {
      const { readModels } = harness.store;
      const other = await again();
      await Promise.all([readModels.requestRetry(), other.requestRetry()]);
      for (const models of [readModels, other, await again()])
        expect((await models.state()).retries).toEqual({ count: 2 });
      await readModels.requestRetry(ONE);
      await other.requestRetry(TWO);
      expect((await readModels.state()).retries).toEqual({ count: 4, tenantId: TWO });
      await readModels.requestRetry();
      expect((await other.state()).retries).toEqual({ count: 5 });
    });
  });

  describe('making a generation live', () => {
    it('is seen by every process', async () => {
      const readModels = await create(one, two);
      expect(await liveIn(readModels)).toEqual([]);
      expect(await readModels.makeLive(one, undefined)).toBe(true);
      for (const models of [readModels, await again()]) expect(await liveIn(models)).toEqual(['one']);
      expect(await readModels.makeLive(two, 'one')).toBe(true);
      expect(await readModels.makeLive(two, 'two')).toBe(true);
      for (const models of [readModels, await again()]) expect(await liveIn(models)).toEqual(['two']);
    });

    it.each([
      ['another one is live', 'two', three],
      ['none was expected to be live', undefined, three],
      ['it does not exist', 'one', id('notes', 1, 'four')],
    ])('is refused if %s', async (_, expected, to) => {
      const readModels = await create(one, two, three);
      await readModels.makeLive(one, undefined);
      expect(await readModels.makeLive(to, expected)).toBe(false);
      expect(await liveIn(readModels)).toEqual(['one']);
    });

    it('is refused if none is live but one was expected to be, or there is no registry yet', async () => {
      expect(await harness.store.readModels.makeLive(one, undefined)).toBe(false);
      expect(await (await create(one)).makeLive(one, 'two')).toBe(false);
      expect(await liveIn(harness.store.readModels)).toEqual([]);
    });

    it('is separate for each name and version', async () => {
      const all = [one, id('notes', 2, 'x'), id('tags', 1, 'y')];
      const readModels = await create(...all);
      for (const each of all) expect(await readModels.makeLive(each, undefined)).toBe(true);
      expect(new Set(await liveIn(readModels))).toEqual(new Set(['one', 'x', 'y']));
    });

    it('is done by only one of many at once', async () => {
      const stores = [await create(one, two, three), await again()];
      const outcomes = await Promise.all(
        [one, two, three].map((each, i) => stores[i % 2]!.makeLive(each, undefined)),
      );
      expect(outcomes.filter(Boolean)).toHaveLength(1);
      expect(await liveIn(stores[0]!)).toEqual([[one, two, three][outcomes.indexOf(true)]!.generation]);
    });
  });

  it('the registry tells by its token whether it may have changed, if it has one', async () => {
    const readModels = await create(one, two);
    const other = await again();
    const { stateToken } = readModels;
    if (stateToken === undefined) return;
    const tokens = new Set([stateToken()]);
    const changes = [
      () => readModels.makeLive(one, undefined),
      () => other.makeLive(two, 'one'),
      () => other.remove(one, { live: true }),
    ];
    for (const change of changes) {
      expect(await change()).toBe(true);
      tokens.add(stateToken());
    }
    expect(tokens.size).toBe(4);
    expect(stateToken()).toBe([...tokens].at(-1));
  });

  describe('a generation that was live', () => {
    it('is known to have been, for every process, for how long', async () => {
      const readModels = await create(one, two, three);
      await readModels.makeLive(one, undefined);
      expect(await leftIn(readModels)).toEqual([]);
      await readModels.makeLive(two, 'one');
      await readModels.makeLive(three, 'two');
      for (const models of [readModels, await again()]) {
        expect(new Set(await leftIn(models))).toEqual(new Set(['one', 'two']));
        expect(await leftIn(models, 0)).toEqual([]);
      }
      await harness.store.later(1_000);
      expect(await leftIn(readModels, 1_000)).toEqual([]);
      expect(await leftIn(readModels)).toHaveLength(2);
    });

    it('can be live again', async () => {
      const readModels = await create(one, two);
      await readModels.makeLive(one, undefined);
      await readModels.makeLive(two, 'one');
      await readModels.makeLive(one, 'two');
      expect(await liveIn(readModels)).toEqual(['one']);
      expect(await leftIn(readModels)).toEqual(['two']);
    });
  });

  describe('removing a generation', () => {
    it('ends it for every process, and nothing can make it live', async () => {
      const readModels = await create(one, two);
      const other = await again();
      await readModels.makeLive(one, undefined);
      const generation = await createAndOpen(other, two, collections, LOG);
      await generation.commit(0, at(1), [note(ONE, 'a', { text: 'gone' })]);
      expect(await readModels.remove(two, { live: true, held: ['work'] })).toBe(true);
      for (const models of [readModels, other, await again()]) {
        expect((await models.state()).generations.map((row) => row.generation)).toEqual(['one']);
        expect(await models.makeLive(two, 'one')).toBe(false);
        await expect(openIn(models, two)).rejects.toMatchObject({ code: 'generation_removed' });
      }
      expect(await readModels.remove(two, {})).toBe(false);
      expect(await liveIn(readModels)).toEqual(['one']);
    });

    it.each([
      ['it is live', { live: true }, one],
      ['a lease is held', { held: ['play', 'work'] }, two],
      ['it was live until just now', { leftWithinMs: 60_000 }, three],
    ])('is refused while %s, and changes nothing', async (_, unless, which) => {
      const readModels = await create(one, two, three);
      await readModels.makeLive(three, undefined);
      await readModels.makeLive(one, 'three');
      await (await again()).lease(['work'], 'holder one');
      const before = await readModels.state();
      expect(await readModels.remove(which, unless)).toBe(false);
      const after = await readModels.state();
      const plain = ({ generations }: typeof before) =>
        generations.map(({ generation, isLive, damage }) => ({ generation, isLive, damage }));
      expect(plain(after)).toEqual(plain(before));
      expect(await readModels.remove(which, { held: ['rest'], leftWithinMs: 0 })).toBe(true);
    });

    it('of a live one leaves none live', async () => {
      const readModels = await create(one, two);
      await readModels.makeLive(one, undefined);
      expect(await readModels.remove(one, {})).toBe(true);
      expect(await liveIn(readModels)).toEqual([]);
      expect(await readModels.makeLive(two, undefined)).toBe(true);
    });

    it('and making it live exclude each other, whichever comes first', async () => {
      const stores = [harness.store.readModels, await again()] as const;
      for (let round = 0; round < 10; round += 1) {
        const [kept, raced] = [id('notes', round + 1, 'kept'), id('notes', round + 1, 'raced')];
        await create(kept, raced);
        await stores[0].makeLive(kept, undefined);
        const [switched, removed] = await Promise.all([
          stores[round % 2 === 0 ? 0 : 1].makeLive(raced, 'kept'),
          stores[round % 3 === 0 ? 0 : 1].remove(raced, { live: true }),
        ]);
        expect(switched).toBe(!removed);
        expect((await storedOf(stores[1], raced)) === undefined).toBe(removed);
        expect(await liveIn(stores[1])).toContain(removed ? 'kept' : 'raced');
      }
    });
  });
};
