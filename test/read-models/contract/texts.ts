import type { Document } from '../../../projections/projector';
import { ONE, at, note, gone, type Harness } from './harness';

/** Any JSON can be stored, and any text as a key or in an index. */
export const textsContract = (harness: Harness): void => {
  const { filled } = harness;

  describe('a key or an indexed value', () => {
    const odd = [
      '',
      ' ',
      '7',
      ' 7',
      '7 7',
      'a',
      'a\u0000',
      'a\u0000b',
      'a\u0000c',
      '\u0000',
      '\u0001',
      '\u0001\u0001',
      '\u0001\u0002',
      'a\ud800',
      'a\ud801',
      'a\udc00b',
      '\ufffd',
      '😀',
    ];

    it('can be any text, and equals no other', async () => {
      const generation = await filled(...odd.map((text) => note(ONE, text, { text, shelf: text })));
      const keys = odd.map((key) => ({ tenantId: ONE, collection: 'notes', key }));
      expect((await generation.load(keys)).map((document) => document?.['text'])).toEqual(odd);
      for (const text of odd) {
        expect(await generation.reader.get(ONE, 'notes', text)).toEqual({ text, shelf: text });
        expect(
          await generation.reader.find(ONE, 'notes', { index: 'by_shelf', equal: [text], limit: 9 }),
        ).toEqual([{ text, shelf: text }]);
      }
      const rows = [];
      for (let page = await generation.reader.scan('notes', 2); page.length > 0;) {
        rows.push(...page);
        page = await generation.reader.scan('notes', 2, page.at(-1));
      }
      expect(new Set(rows.map(({ key }) => key))).toEqual(new Set(odd));
      expect(rows).toHaveLength(odd.length);
      await generation.commit(1, at(2), [gone(ONE, 'notes', 'a\u0000b')]);
      expect(await generation.reader.get(ONE, 'notes', 'a\u0000b')).toBeUndefined();
      expect(await generation.reader.get(ONE, 'notes', 'a')).toBeDefined();
    });
  });

  describe('documents', () => {
    it.each<[string, Document]>([
      ['nothing', {}],
      ['unicode', { text: 'Zoë 漢字 😀 e\u0301 \u202e', 'schlüssel 漢': 'ß', shelf: '漢字😀' }],
      ['unusual characters', { text: 'quote \' " \\ \n \t \u0000 %_', shelf: "'; --" }],
      ['nested objects', { a: { b: { c: [{ d: [] }, {}] } }, list: [1, 'two', null, true] }],
      ['numbers', { zero: 0, less: -1, part: 0.1, most: Number.MAX_SAFE_INTEGER, huge: 1e300, tiny: 5e-324 }],
      ['numbers in an index', { shelf: Number.MAX_SAFE_INTEGER, place: -0.5 }],
      ['empty values', { text: '', list: [], object: {}, nothing: null, no: false, shelf: '' }],
      ['a long text', { text: 'long '.repeat(20_000) }],
    ])('are returned unchanged: %s', async (_, document) => {
      const generation = await filled(note(ONE, 'a', document));
      expect(await generation.reader.get(ONE, 'notes', 'a')).toEqual(document);
      expect(await generation.reader.find(ONE, 'notes', { limit: 1 })).toEqual([document]);
      const { shelf } = document as { shelf?: string | number };
      if (shelf === undefined) return;
      const query = { index: 'by_shelf', equal: [shelf], limit: 9 };
      expect(await generation.reader.find(ONE, 'notes', query)).toEqual([document]);
    });

    it.each(['漢字 😀', 'a/b', "it's", '%', 'A', ''])('can be stored under the key "%s"', async (key) => {
      const generation = await filled(note(ONE, key, { key }), note(ONE, 'a', { key: 'a' }));
      expect(await generation.reader.get(ONE, 'notes', key)).toEqual({ key });
      expect(await generation.reader.find(ONE, 'notes', { limit: 9 })).toHaveLength(2);
    });
  });
};
