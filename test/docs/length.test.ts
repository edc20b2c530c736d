import { tables } from './tables';
import { pages, textOf } from './pages';

/** A page that nobody reads to its end helps nobody. Decisions are read one by one: their sum is not limited. */
const MOST = { words: 25_500, page: 2_500, paragraph: 90, cell: 40, decisions: 15 };

const isDecision = (page: string): boolean => page.includes('decisions');
const own = pages.filter((page) => !isDecision(page));

const wordsIn = (text: string): number => text.split(/\s+/).filter((word) => word !== '').length;

const withoutTables = (page: string): string =>
  (tables[page] ?? []).reduce((text, { name }) => {
    const [before = '', after = ''] = text.split(new RegExp(`<!-- ${name} -->[^]*<!-- /${name} -->`));
    return before + after;
  }, textOf(page));

const prose = (page: string): string => textOf(page).replaceAll(/^ *```[^]*?^ *```$/gm, '');
const isRow = (line: string): boolean => line.startsWith('|');

/** What stands between empty lines, and each item of a list. */
const paragraphsOf = (page: string): readonly string[] =>
  prose(page)
    .split('\n')
    .map((line) => (isRow(line) ? '' : line.replace(/^ *(?:[-*]|\d+\.) /, '\n$&')))
    .join('\n')
    .split(/\n\s*\n/);
const cellsOf = (page: string): readonly string[] =>
  prose(page)
    .split('\n')
    .filter(isRow)
    .flatMap((line) => line.split(/(?<!\\)\|/));

const tooLong = (texts: readonly string[], most: number): readonly string[] =>
  texts.filter((text) => wordsIn(text) > most).map((text) => `${wordsIn(text)} words: ${text.slice(0, 80)}`);

describe('the README and docs/', () => {
  it('are short enough to be read', () => {
    const words = own.map((page) => wordsIn(textOf(page))).reduce((sum, count) => sum + count, 0);
    expect(words).toBeLessThanOrEqual(MOST.words);
    expect(words).toBeGreaterThan(MOST.words / 2);
  });

  it('have at most fifteen decisions', () => {
    expect(pages.filter(isDecision).length).toBeLessThanOrEqual(MOST.decisions);
  });

  it.each(own)('%s is a page of at most 2,500 words, but for generated tables', (page) => {
    expect(wordsIn(withoutTables(page))).toBeLessThanOrEqual(MOST.page);
  });

  it.each(pages)('%s has no paragraph of more than 90 words', (page) => {
    expect(tooLong(paragraphsOf(page), MOST.paragraph)).toEqual([]);
  });

  it.each(pages)('%s has no cell of more than 40 words', (page) => {
    expect(tooLong(cellsOf(page), MOST.cell)).toEqual([]);
  });
});
