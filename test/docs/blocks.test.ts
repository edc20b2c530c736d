import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { blocksOf, pages, ROOT } from './pages';

/** What can be run or compared. Of all others the language is named. */
const CHECKED = ['js', 'json', 'python', 'sh'];
const OTHERS = ['cron', 'ini', 'mermaid', 'nginx', 'rsyslog', 'text', 'yaml'];

const all = pages.flatMap(blocksOf);
const samples = all.filter(({ language }) => CHECKED.includes(language));
const isLeft = ({ whyNot }: (typeof samples)[number]): boolean => whyNot !== undefined;

const testsIn = (folder: string): readonly string[] =>
  readdirSync(join(ROOT, 'test', folder))
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => readFileSync(join(ROOT, 'test', folder, name), 'utf8'));
const tests = testsIn('docs').join('\n');

describe('the samples of the README and of docs/', () => {
  it('are all in a language that says whether it can be run', () => {
    expect(new Set(all.map(({ language }) => language))).toEqual(new Set([...CHECKED, ...OTHERS]));
  });

  it('are each run or compared by a test, unless they say why not', () => {
    const needed = samples.filter((block) => !isLeft(block));
    const calls = new Set(needed.map(({ page, language }) => `blocks('${page}', '${language}')`));
    expect([...calls].filter((call) => !tests.includes(call))).toEqual([]);
    for (const { whyNot } of samples.filter(isLeft)) expect(whyNot).toMatch(/^.{10,}$/);
    expect([needed.length, samples.length - needed.length]).toEqual([44, 11]);
  });
});
