import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const ROOT = join(__dirname, '..', '..', '..');

const pages = [
  ...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];

/** As GitHub generates them. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

const anchorsIn = (page: string): ReadonlySet<string> =>
  new Set(
    Array.from(readFileSync(page, 'utf8').matchAll(/^#+ (.*)$/gm), ([, heading = '']) => anchorOf(heading)),
  );

describe('the links', () => {
  it.each(pages)('in %s point to something that exists', (page) => {
    const text = readFileSync(join(ROOT, page), 'utf8').replaceAll(/```.*?```/gs, '');
    const links = Array.from(text.matchAll(/\]\(([^)\s]+)\)/g), ([, link = '']) => link);
    const lost = links
      .filter((link) => !/^https?:/.test(link))
      .filter((link) => {
        const [path = '', anchor] = link.split('#');
        const target = path === '' ? join(ROOT, page) : join(ROOT, dirname(page), path);
        if (relative(ROOT, target).startsWith('..') || !existsSync(target)) return true;
        return anchor !== undefined && !anchorsIn(target).has(anchor);
      });
    expect(lost).toEqual([]);
  });
});
