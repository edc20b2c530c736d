import { storedOf } from '../../support/generations';
import { until } from '../../support/waiting';
import { collections, id, LOG, note, ONE, at, stateOf, type Harness } from './harness';

/** What a generation is, and what happens to one that is dropped. */
export const generationsContract = (harness: Harness): void => {
  const { again, openIn, createIn, fresh, filled } = harness;

  describe('a generation', () => {
    it('starts empty and bound to its log', async () => {
      const generation = await fresh();
      expect(await generation.control()).toEqual({ n: 0, log: LOG });
      expect(await stateOf(generation)).toMatchObject({ documents: [], found: [[], []] });
      expect(generation.id).toEqual(id('notes'));
    });

    it('is not emptied when it is reopened', async () => {
      const generation = await filled(note(ONE, 'a', { text: 'kept' }));
      const other = await (await again()).open(id('notes'), collections);
      expect(await stateOf(other)).toEqual(await stateOf(generation));
      expect((await other.control()).log).toBe(LOG);
    });

    it.each(['open', 'build'] as const)('is not created by %s', async (how) => {
      const { readModels } = harness.store;
      for (const models of [readModels, await again()])
        await expect(models[how](id('notes'), collections)).rejects.toMatchObject({
          code: 'generation_removed',
        });
      expect((await readModels.state()).generations).toEqual([]);
    });

    it('can be opened twice in one process: both stay usable', async () => {
      const first = await fresh();
      const second = await fresh();
      expect(await first.commit(0, at(1), [note(ONE, 'a', { text: 'first' })])).toBe(true);
      expect(await second.commit(1, at(2), [note(ONE, 'b', { text: 'second' })])).toBe(true);
      expect(await stateOf(first)).toEqual(await stateOf(second));
    });

    it('can be opened by two at once', async () => {
      const other = await again();
      await createIn(other);
      const [one, two] = await Promise.all([openIn(harness.store.readModels), openIn(other)]);
      expect(await one.commit(0, at(1), [note(ONE, 'a', { text: 'a' })])).toBe(true);
      expect(await stateOf(two)).toEqual(await stateOf(one));
    });

    it('shares nothing with other versions and generations', async () => {
      const ids = [id('notes'), id('notes', 1, 'two'), id('notes', 2), id('tags')];
      const all = await Promise.all(
        ids.map((generationId) => createIn(harness.store.readModels, generationId)),
      );
      for (const [i, generation] of all.entries())
        expect(await generation.commit(0, at(i + 1), [note(ONE, 'a', { i })])).toBe(true);
      for (const [i, generation] of all.entries()) {
        expect(await generation.reader.get(ONE, 'notes', 'a')).toEqual({ i });
        expect((await generation.control()).to).toEqual(at(i + 1));
      }
    });

    it('that lacks documents which must be there is damaged, and never gives a short answer', async () => {
      const generation = await filled(
        note(ONE, 'a', { shelf: 'a', place: 1, moment: '1' }),
        note(ONE, 'c', { shelf: 'a', place: 3, moment: '3' }),
      );
      const onShelf = { index: 'on_shelf', equal: ['a'], from: 1 };
      expect(await generation.reader.find(ONE, 'notes', { ...onShelf, upTo: 3, limit: 3 })).toHaveLength(2);
      const whole = { ...onShelf, areAllThere: true };
      expect(await generation.reader.find(ONE, 'notes', { ...whole, upTo: 1, limit: 1 })).toHaveLength(1);
      await expect(
        generation.reader.find(ONE, 'notes', { ...whole, upTo: 3, limit: 3 }),
      ).rejects.toMatchObject({ code: 'read_models_unavailable', more: { damaged: 'notes_v1_one' } });
      await until(async () => (await storedOf(harness.store.readModels, id('notes')))?.damage !== undefined);
      await harness.store.readModels.create(id('notes', 1, 'two'), collections, LOG);
      expect(await (await again()).makeLive(id('notes'), undefined)).toBe(false);
      await expect(openIn(await again())).rejects.toMatchObject({ more: { damaged: 'notes_v1_one' } });
      expect(await generation.reader.get(ONE, 'notes', 'a')).toMatchObject({ place: 1 });
    });

    it('says so when it was removed, and its queries fail', async () => {
      const generation = await filled(note(ONE, 'a', { text: 'gone' }));
      expect(await harness.store.readModels.remove(id('notes'), {})).toBe(true);
      for (const asked of [generation.control(), generation.reader.applied()])
        await expect(asked).rejects.toMatchObject({ code: 'generation_removed' });
      await expect(generation.reader.get(ONE, 'notes', 'a')).rejects.toMatchObject({
        code: 'read_models_unavailable',
      });
    });

    it('is listed', async () => {
      const ids = [id('notes'), id('notes', 1, 'two'), id('notes', 12, 'a10'), id('more_notes')];
      for (const one of ids) await createIn(harness.store.readModels, one);
      const { generations } = await (await again()).state();
      expect(generations).toHaveLength(ids.length);
      expect(generations).toEqual(expect.arrayContaining(ids.map((one) => ({ ...one, isLive: false }))));
    });
  });
};
