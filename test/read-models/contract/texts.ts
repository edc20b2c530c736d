import type { Document } from '../../../projections/projector';
import { ONE, advanceBy, deletion, note, pagesOf, type Harness } from './storage';

const odd = ['', ' ', '7', ' 7', '7 7', 'a', 'a\0', 'a\0b', 'a\0c', '\0', '\u0001', '\u0001\u0001'].concat([
  '\u0001\u0002',
  '\0\u0002',
  '\ufffd',
  '😀',
]);

/** Any JSON of well-formed text can be stored, and any such text as a key or in an index. */
export const describeTexts = ({ filled, filledOnce }: Harness): void => {
  describe('a key or an indexed value', () => {
    it('can be any well-formed text, and equals no other', async () => {
      const set = await filled(...odd.map((text) => note(ONE, text, { text, shelf: text })));
      const keys = odd.map((key) => ({ tenantId: ONE, collection: 'notes', key }));
      expect((await set.load(keys)).map((document) => document?.['text'])).toEqual(odd);
      for (const text of odd) {
        expect(await set.get(ONE, 'notes', text)).toEqual({ text, shelf: text });
        const query = { index: 'by_shelf', equal: [text], limit: 9 };
        expect(await set.find(ONE, 'notes', query)).toEqual([{ text, shelf: text }]);
      }
      await advanceBy(set, 2, deletion(ONE, 'notes', 'a\0b'));
      expect(await set.get(ONE, 'notes', 'a\0b')).toBeUndefined();
      expect(await set.get(ONE, 'notes', 'a')).toBeDefined();
    });

    it('is scanned in the order of its UTF-8 bytes, however the pages fall', async () => {
      const set = await filled(...odd.map((text) => note(ONE, text, { text })));
      const rows = await pagesOf(set, 2);
      const inOrder = odd.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      expect(rows.map(({ key }) => key)).toEqual(inOrder);
    });
  });

  describe('documents', () => {
    const documents: readonly [string, Document][] = [
      ['nothing', {}],
      ['unicode', { text: 'Zoë 漢字 😀 e\u0301 \u202e', 'schlüssel 漢': 'ß', shelf: '漢字😀' }],
      ['unusual characters', { text: 'quote \' " \\ \n \t \0 %_', shelf: "'; --" }],
      ['nested objects', { a: { b: { c: [{ d: [] }, {}] } }, list: [1, 'two', null, true] }],
      ['unusual names', { '': 1, $set: 2, 'a.b': 3, _id: 4, constructor: 5, n: 6, document: 7 }],
      ['numbers', { zero: 0, less: -1, part: 0.1, most: Number.MAX_SAFE_INTEGER, huge: 1e300, tiny: 5e-324 }],
      ['numbers in an index', { shelf: Number.MAX_SAFE_INTEGER, place: -0.5 }],
      ['empty values', { text: '', list: [], object: {}, nothing: null, no: false, shelf: '' }],
      ['a long text', { text: 'long '.repeat(20_000) }],
    ];
    const kept = filledOnce(...documents.map(([key, document]) => note(ONE, key, document)));

    it.each(documents)('are returned unchanged: %s', async (key, document) => {
      const set = kept();
      expect(await set.get(ONE, 'notes', key)).toEqual(document);
      expect(await set.load([note(ONE, key, {})])).toEqual([document]);
      expect(await set.find(ONE, 'notes', { from: key, upTo: key, limit: 9 })).toEqual([document]);
      const scanned = (await set.scan('notes', 99)).find((row) => row.key === key);
      expect(JSON.parse(scanned?.text ?? '')).toEqual(document);
      const { shelf } = document as { shelf?: string | number };
      if (shelf === undefined) return;
      const query = { index: 'by_shelf', equal: [shelf], limit: 9 };
      expect(await set.find(ONE, 'notes', query)).toEqual([document]);
    });
  });
};
