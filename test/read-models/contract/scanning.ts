import { PROGRESS, PROGRESS_KEY } from '../../../projections/projector';
import { ONE, TWO, advanceBy, deletion, note, pagesOf, progressAt, put, type Harness } from './storage';

/** All documents of a collection, page by page. */
export const describeScanning = ({ filled }: Harness): void => {
  describe('scanning', () => {
    it('pages over all tenants in the order of tenant and key', async () => {
      const keys = ['b', 'a', 'ä', 'Z', '10', '9', 'a b', '😀', '％'];
      const set = await filled(
        put(ONE.replaceAll('1', '0'), 'counts', 'n', { count: 1 }),
        ...[TWO, ONE].flatMap((tenant) => keys.map((key) => note(tenant, key, { of: tenant, key }))),
      );
      const inOrder = keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      const expected = [ONE, TWO].flatMap((tenantId) =>
        inOrder.map((key) => ({ tenantId, key, text: JSON.stringify({ of: tenantId, key }) })),
      );
      for (const limit of [1, 4, 9, 18, 100]) expect(await pagesOf(set, limit)).toEqual(expected);
    });

    it('shows a document under the empty key', async () => {
      const set = await filled(note(ONE, '', { key: '' }), note(ONE, 'a', {}), note(TWO, '', {}));
      for (const limit of [1, 2, 9])
        expect((await pagesOf(set, limit)).map(({ tenantId, key }) => [tenantId, key])).toEqual([
          [ONE, ''],
          [ONE, 'a'],
          [TWO, ''],
        ]);
    });

    it('begins with the first document of a tenant, or after a document', async () => {
      const set = await filled(note(ONE, 'a', {}), note(TWO, '', {}), note(TWO, 'b', {}));
      const found = async (after: { tenantId: string; key?: string }) =>
        (await set.scan('notes', 9, after)).map(({ tenantId, key }) => [tenantId, key]);
      expect(await found({ tenantId: TWO })).toEqual([
        [TWO, ''],
        [TWO, 'b'],
      ]);
      expect(await found({ tenantId: TWO, key: '' })).toEqual([[TWO, 'b']]);
      expect(await found({ tenantId: '12' })).toHaveLength(2);
      expect(await found({ tenantId: '3', key: 'a' })).toEqual([]);
    });

    it('continues after a document that was removed in the meantime', async () => {
      const set = await filled(...['a', 'b', 'c'].map((key) => note(ONE, key, { key })));
      await advanceBy(set, 2, deletion(ONE, 'notes', 'b'));
      const rest = await set.scan('notes', 9, { tenantId: ONE, key: 'b' });
      expect(rest.map((row) => row.key)).toEqual(['c']);
    });

    it('shows the progress of every tenant, and nothing else of its kind', async () => {
      const set = await filled(note(TWO, 'a', {}), note(ONE, 'a', {}));
      const rows = await set.scan(PROGRESS.name, 9);
      expect(rows.map(({ text, ...row }) => ({ ...row, document: JSON.parse(text) as unknown }))).toEqual(
        [ONE, TWO].map((tenantId) => ({ tenantId, key: PROGRESS_KEY, document: progressAt(1) })),
      );
      expect(await set.scan(PROGRESS.name, 9, rows[0])).toHaveLength(1);
      expect(await set.get(ONE, PROGRESS.name, PROGRESS_KEY)).toEqual(progressAt(1));
    });
  });
};
