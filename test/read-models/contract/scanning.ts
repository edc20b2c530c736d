import { PARKED } from '../../../src/read-models/read-models';
import { ONE, TWO, at, put, note, gone, type Harness } from './harness';

/** All documents of a collection, page by page. */
export const scanningContract = (harness: Harness): void => {
  const { filled } = harness;

  describe('scanning', () => {
    it('pages over all tenants in the order of tenant and key', async () => {
      const keys = ['b', 'a', 'ä', 'Z', '10', '9', 'a b', '😀', '％'];
      const tenants = [TWO, ONE];
      const generation = await filled(
        ...tenants.flatMap((tenant) => keys.map((key) => note(tenant, key, { of: tenant, key }))),
      );
      const inOrder = keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      const expected = [ONE, TWO].flatMap((tenantId) =>
        inOrder.map((key) => ({ tenantId, key, document: { of: tenantId, key } })),
      );
      for (const limit of [1, 4, 18, 100]) {
        const rows = [];
        let page = await generation.reader.scan('notes', limit);
        while (page.length > 0) {
          expect(page.length).toBeLessThanOrEqual(limit);
          rows.push(...page);
          page = await generation.reader.scan('notes', limit, page.at(-1));
        }
        expect(rows).toEqual(expected);
      }
    });

    it('shows a document under the empty key', async () => {
      const generation = await filled(note(ONE, '', { key: '' }), note(ONE, 'a', {}), note(TWO, '', {}));
      const found = async (limit: number) => {
        const rows = [];
        for (let page = await generation.reader.scan('notes', limit); page.length > 0;) {
          rows.push(...page.map(({ tenantId, key }) => [tenantId, key]));
          page = await generation.reader.scan('notes', limit, page.at(-1));
        }
        return rows;
      };
      for (const limit of [1, 2, 9])
        expect(await found(limit)).toEqual([
          [ONE, ''],
          [ONE, 'a'],
          [TWO, ''],
        ]);
    });

    it('continues after a document that was removed in the meantime', async () => {
      const generation = await filled(...['a', 'b', 'c'].map((key) => note(ONE, key, { key })));
      await generation.commit(1, at(2), [gone(ONE, 'notes', 'b')]);
      const rest = await generation.reader.scan('notes', 9, { tenantId: ONE, key: 'b' });
      expect(rest.map((row) => row.key)).toEqual(['c']);
    });

    it('shows the parked tenants', async () => {
      const generation = await filled(put(TWO, PARKED, 'tenant', { reason: 'r' }));
      expect(await generation.reader.scan(PARKED, 9)).toEqual([
        { tenantId: TWO, key: 'tenant', document: { reason: 'r' } },
      ]);
    });
  });
};
