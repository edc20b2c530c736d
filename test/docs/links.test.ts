import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { benchmarks } from '../../bench/run';
import { programVersion } from '../../src/configuration';
import { routes } from '../../src/http/api';
import { headerNames } from '../../src/http/context';
import { openApiDocument } from '../../src/http/openapi/document';
import { campaigns } from '../campaigns';
import { pages as documented, ROOT } from './pages';

const pages = [...new Set([...readdirSync(ROOT).filter((name) => name.endsWith('.md')), ...documented])];

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

describe('the files', () => {
  const FILE = /`((?:src|projections|portal|test|bench|scripts|docs)\/[\w./-]+)`/g;

  it.each(pages)('that %s names exist', (page) => {
    const text = readFileSync(join(ROOT, page), 'utf8');
    const named = Array.from(text.matchAll(FILE), ([, file = '']) => file);
    expect(named.filter((file) => !/[A-Z]{4}/.test(file) && !existsSync(join(ROOT, file)))).toEqual([]);
  });
});

describe('the commands', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly scripts: Readonly<Record<string, string>>;
  };

  it.each(pages)('in %s exist', (page) => {
    const text = readFileSync(join(ROOT, page), 'utf8');
    const named = Array.from(text.matchAll(/npm run ([a-z][a-z:-]*)/g), ([, name = '']) => name);
    expect(named.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
    const programs = { bench: benchmarks, campaign: campaigns };
    for (const [, script, name = ''] of text.matchAll(/npm run (bench|campaign) -- ([a-z-]+)/g))
      expect(Object.keys(programs[script as keyof typeof programs])).toContain(name);
  });

  it('of the proofs name tests and campaigns that exist', () => {
    const text = readFileSync(join(ROOT, 'docs', 'guarantees.md'), 'utf8');
    const named = Array.from(text.matchAll(/`([a-z-]+\/[a-z-]+)`/g), ([, name = '']) => name);
    expect(named.length).toBeGreaterThan(8);
    expect(named.filter((name) => !existsSync(join(ROOT, 'test', `${name}.test.ts`)))).toEqual([]);
    const proofs = text.split('\n').flatMap((line) => line.split('|').slice(2));
    const others = proofs.flatMap((cell) =>
      Array.from(cell.matchAll(/`([a-z-]+)`/g), ([, name = '']) => name),
    );
    expect(others.length).toBeGreaterThan(8);
    expect(others.filter((name) => !Object.hasOwn(campaigns, name))).toEqual([]);
  });
});

describe('the paths', () => {
  const described = openApiDocument(routes, {
    headers: headerNames('SVC'),
    publicUrl: '',
    version: programVersion(),
  });
  const paths = new Set(Object.keys(described['paths'] as object));

  it.each(pages)('with parameters in %s are spelt as in the OpenAPI document', (page) => {
    const text = readFileSync(join(ROOT, page), 'utf8');
    const named = Array.from(
      text.matchAll(/`(?:[A-Z]+ )?(\/[^\s`?]*\{[^\s`?]*)[^`]*`/g),
      ([, path = '']) => path,
    );
    expect(named.filter((path) => !paths.has(path))).toEqual([]);
  });
});
