import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(__dirname, '..', '..', '..');

/** The README and everything below docs/. */
export const pages: readonly string[] = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name))
    .toSorted(),
];

export const textOf = (page: string): string => readFileSync(join(ROOT, page), 'utf8');

interface Block {
  readonly page: string;
  readonly language: string;
  readonly text: string;
  /** Why no test runs it, if the page says so. */
  readonly whyNot: string | undefined;
}

const BLOCK = /(?:<!-- not run: (.+) -->\n\n)?^( *)```(\w*)\n([\s\S]*?)^ *```$/gm;

export const blocksOf = (page: string): readonly Block[] =>
  Array.from(textOf(page).matchAll(BLOCK), ([, whyNot, indent = '', language = '', text = '']) => ({
    page,
    language,
    text: text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    whyNot,
  }));

/** The blocks of a page in one language that a test has to run or to compare. */
export const blocks = (page: string, language: string): readonly string[] =>
  blocksOf(page)
    .filter((block) => block.language === language && block.whyNot === undefined)
    .map(({ text }) => text);
