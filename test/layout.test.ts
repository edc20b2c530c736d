import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const ROOT = join(__dirname, '..', '..');

const PROGRAM = ['src', 'projections'];

const filesIn = (folder: string): readonly string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => `${folder}/${file}`);

const textOf = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

const VALUE = /^export (?:const|function\*?|async function\*?|class) (\w+)/gm;
const TYPE = /^export (?:interface|type) (\w+)/gm;
/** Static imports and re-exports, and those on demand: `const { y, z } = require('./x') as typeof import('./x')`. */
const IMPORT = /(?:^import|^export) (?:type )?\{([^}]*)\} from '(\.[^']*)'/gm;
/** `import * as x from './y'` */
const NAMESPACE = /^import \* as (\w+) from '(\.[^']*)'/gm;
const REQUIRED = /const \{([^}]*)\} =\s+require\('(\.[^']*)'\)/g;

/** `a`, `type a`, `a as b` */
const namesIn = (list: string): readonly string[] =>
  list
    .split(',')
    .map((item) =>
      item
        .trim()
        .replace(/^type /, '')
        .replace(/ as \w+$/, ''),
    )
    .filter((name) => name !== '');

/** `file name` of everything that a file imports from our own files. */
const importsOf = (file: string): readonly string[] => {
  const text = textOf(file);
  const at = (from: string, name: string): string => `${normalize(join(dirname(file), from))}.ts ${name}`;
  return [
    ...[...text.matchAll(IMPORT), ...text.matchAll(REQUIRED)].flatMap(([, names = '', from = '']) =>
      namesIn(names).map((name) => at(from, name)),
    ),
    ...[...text.matchAll(NAMESPACE)].flatMap(([, space = '', from = '']) =>
      text.includes(`...${space}`)
        ? at(from, '*')
        : Array.from(text.matchAll(new RegExp(`\\b${space}\\.(\\w+)`, 'g')), ([, name = '']) =>
            at(from, name),
          ),
    ),
  ];
};

const exportedBy = (pattern: RegExp): readonly { readonly file: string; readonly name: string }[] =>
  PROGRAM.flatMap(filesIn).flatMap((file) =>
    Array.from(textOf(file).matchAll(pattern), ([, name = '']) => ({ file, name })),
  );

const importedBy = (folders: readonly string[]): ReadonlySet<string> =>
  new Set(folders.flatMap(filesIn).flatMap(importsOf));

const values = exportedBy(VALUE).map(({ file, name }) => `${file} ${name}`);
const types = exportedBy(TYPE);

/** The entry point, and what only tests import: a bound or a step that they look at from inside. */
const ALLOWED: ReadonlySet<string> = new Set<string>([
  'src/app/logger.ts withoutDetails',
  'src/cli/main.ts main',
  'src/http/api.ts routes',
  'src/ingest/lines.ts MAX_LINE_BYTES',
  'src/ledger/api-key.ts makeKey',
  'src/ledger/api-key.ts makeServiceKey',
  'src/mongodb/connection.ts addressOf',
]);

describe('an export of the program', () => {
  it('is detected by these patterns', () => {
    expect(values.length).toBeGreaterThan(300);
    expect(types.length).toBeGreaterThan(100);
    expect(importedBy(PROGRAM).size).toBeGreaterThan(300);
  });

  it('is imported by another file of the program', () => {
    const used = importedBy(PROGRAM);
    const isUsed = (value: string): boolean => used.has(value) || used.has(value.replace(/ .*/, ' *'));
    expect(values.filter((value) => !isUsed(value) && !ALLOWED.has(value))).toEqual([]);
  });

  it('is imported by another file, or part of another export, if it is a type', () => {
    const used = importedBy([...PROGRAM, 'test', 'bench']);
    const isMentioned = (file: string, name: string): boolean =>
      [...textOf(file).matchAll(new RegExp(`\\b${name}\\b`, 'g'))].length > 1;
    const dead = types.filter(({ file, name }) => !used.has(`${file} ${name}`) && !isMentioned(file, name));
    expect(dead).toEqual([]);
  });

  it('stays in the list of exceptions only while tests import it', () => {
    const used = importedBy(PROGRAM);
    const usedByTests = importedBy(['test', 'bench']);
    expect([...ALLOWED].filter((value) => used.has(value) || !usedByTests.has(value))).toEqual([]);
  });
});
