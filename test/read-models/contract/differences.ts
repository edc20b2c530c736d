import { differences } from '../../../src/read-models/differences';
import type { Compared, Generation, Write } from '../../../src/read-models/read-models';
import { at, collections, gone, id, LOG, note, ONE, put, TWO, type Harness } from './harness';
import { createAndOpen } from '../../support/generations';

type Scope = Parameters<typeof differences>[2];

/** The suspects of a comparison. */
export const differencesContract = (harness: Harness): void => {
  const { filled, fresh } = harness;
  const keys = ['b', 'a', 'ä', '', 'a\u0000b', 'a"', '😀', 'a b', 'a\ud800'];
  const STRANGER = '0198c0de-0000-7000-8000-00000000000f';
  const inBoth = (some: readonly Write[]): Write[] =>
    some.flatMap((write) => [
      { ...write, collection: 'notes' },
      { ...write, collection: 'counts' },
    ]);
  const writes = inBoth(
    [TWO, ONE].flatMap((tenant) => keys.map((key) => note(tenant, key, { of: tenant, key, shelf: 1 }))),
  );
  /** Another generation with these documents. */
  const another = async (documents: readonly Write[]): Promise<Generation> => {
    const other = await createAndOpen(
      harness.store.readModels,
      { ...id('notes'), generation: 'two' },
      collections,
      LOG,
    );
    expect(await other.commit(0, at(1), documents)).toBe(true);
    return other;
  };
  const compared = async (live: Generation, rebuilt: Generation, scope: Scope) => {
    const steps: Compared[] = [];
    for await (const step of differences(live, rebuilt, scope)) steps.push(step);
    const suspects = steps.flatMap((step) => step.suspects);
    return {
      documents: steps.reduce((sum, step) => sum + step.documents, 0),
      suspects,
      names: new Set(suspects.map(({ tenantId, key }) => `${tenantId} ${key}`)),
    };
  };

  describe('differences', () => {
    it('are none between equal generations, whatever their batches were', async () => {
      const live = await filled(...writes);
      const other = await createAndOpen(harness.store.readModels, id('notes', 1, 'two'), collections, LOG);
      let n = 0;
      for (const write of writes) expect(await other.commit(n++, at(n), [write])).toBe(true);
      for (const collection of ['notes', 'counts'])
        expect(await compared(live, other, { collection })).toMatchObject({
          documents: 2 * keys.length,
          suspects: [],
        });
    });

    it.each<[string, Write[], string]>([
      ['a changed document', [note(TWO, '😀', { of: TWO, key: 'x' })], `${TWO} 😀`],
      ['an extra document', [note(TWO, '😀😀', {})], `${TWO} 😀😀`],
      ['an extra document of another tenant', [note(STRANGER, 'b', {})], `${STRANGER} b`],
      ['a missing document', [gone(ONE, 'notes', '')], `${ONE} `],
      ['a document whose key differs after a NUL', [note(ONE, 'a\u0000b', { of: TWO })], `${ONE} a\u0000b`],
      ['a document whose key differs after a lone surrogate', [note(ONE, 'a\ud801', {})], `${ONE} a\ud801`],
    ])('are the documents that differ: %s', async (__, changes, name) => {
      const [live, rebuilt] = [await filled(...writes), await another(writes)];
      await rebuilt.commit(1, at(2), inBoth(changes));
      for (const collection of ['notes', 'counts']) {
        expect((await compared(live, rebuilt, { collection })).names).toContain(name);
        expect((await compared(rebuilt, live, { collection })).names).toContain(name);
        for (const { collection: found } of (await compared(live, rebuilt, { collection })).suspects)
          expect(found).toBe(collection);
      }
    });

    it('are found if everything is stored in another order', async () => {
      const live = await filled(...writes);
      const changed = writes.map((write) =>
        write.tenantId === ONE && write.key === 'ä' ? { ...write, document: { of: 'nobody' } } : write,
      );
      const rebuilt = await another(changed.toReversed());
      for (const collection of ['notes', 'counts'])
        expect((await compared(live, rebuilt, { collection })).names).toContain(`${ONE} ä`);
    });

    it('name the side of a document that only one has', async () => {
      const live = await filled(...writes, note(ONE, 'live only', {}));
      const rebuilt = await another([...writes, note(ONE, 'rebuilt only', {})]);
      const { suspects } = await compared(live, rebuilt, { collection: 'notes' });
      const sideOf = (name: string) => suspects.filter(({ key }) => key === name).map(({ seenIn }) => seenIn);
      expect(sideOf('live only')).toEqual(['live']);
      expect(sideOf('rebuilt only')).toEqual(['rebuilt']);
    });

    it('are all documents if one side is empty', async () => {
      const [live, rebuilt] = [await fresh(), await another(writes)];
      for (const collection of ['notes', 'counts']) {
        const missing = await compared(live, rebuilt, { collection });
        expect([missing.documents, missing.names.size]).toEqual([0, 2 * keys.length]);
        const tooMany = await compared(rebuilt, live, { collection });
        expect([tooMany.documents, tooMany.names.size]).toEqual([2 * keys.length, 2 * keys.length]);
      }
    });

    it('are none if only the order of the members differs', async () => {
      const live = await filled(note(ONE, 'a', { one: 1, two: { x: 1, y: [1, 2] } }));
      const rebuilt = await another([note(ONE, 'a', { two: { y: [1, 2], x: 1 }, one: 1 })]);
      expect(await compared(live, rebuilt, { collection: 'notes' })).toMatchObject({
        documents: 1,
        suspects: [],
      });
    });

    it('can be limited to one tenant', async () => {
      const live = await filled(...writes);
      const rebuilt = await another([...writes, note(ONE, 'more', {}), note(TWO, 'more', {})]);
      const found = await compared(live, rebuilt, { collection: 'notes', tenantId: ONE });
      expect(found.documents).toBe(keys.length);
      expect([...found.names]).toEqual([`${ONE} more`]);
      const nobody = await compared(live, rebuilt, { collection: 'notes', tenantId: STRANGER });
      expect(nobody).toMatchObject({ documents: 0, suspects: [] });
    });

    it('are found among thousands of documents, a few at a time', async () => {
      const manyNotes = Array.from({ length: 2_300 }, (__, i) =>
        put(i % 3 === 0 ? TWO : ONE, 'notes', `k${i}`, { i }),
      );
      const live = await filled(...inBoth(manyNotes));
      const rebuilt = await another(inBoth(manyNotes));
      const wrong = [0, 499, 500, 501, 1_000, 2_299].map((i) => manyNotes[i] as Write);
      await rebuilt.commit(1, at(2), inBoth(wrong.map((write) => ({ ...write, document: { i: -1 } }))));
      for (const collection of ['notes', 'counts']) {
        let documents = 0;
        const names = new Set<string>();
        for await (const step of differences(live, rebuilt, { collection })) {
          documents += step.documents;
          expect(step.suspects.length).toBeLessThanOrEqual(1_000);
          for (const { tenantId, key } of step.suspects) names.add(`${tenantId} ${key}`);
        }
        expect(documents).toBe(manyNotes.length);
        for (const { tenantId, key } of wrong) expect(names).toContain(`${tenantId} ${key}`);
      }
    });

    it('refuse an undeclared collection', async () => {
      const live = await fresh();
      await expect(compared(live, live, { collection: 'nowhere' })).rejects.toThrow(/nowhere/);
    });
  });
};
