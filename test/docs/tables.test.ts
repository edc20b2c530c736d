import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './pages';
import { tables } from './tables';

/**
 * The tables in docs/ are generated from the code. A table is between `<!-- name -->` and `<!-- /name -->`. `npm run
 * docs` rewrites them; otherwise this test reports which one is out of date.
 */
const writing = process.env['WRITE_DOCS'] === '1';

const withTables = (text: string, file: string): string =>
  (tables[file] ?? []).reduce((whole, { name, text: made }) => {
    const [before, rest] = whole.split(`<!-- ${name} -->`);
    const [, after] = (rest ?? '').split(`<!-- /${name} -->`);
    if (before === undefined || after === undefined)
      throw new Error(`${file} has no place for the table ${name}.`);
    return `${before}<!-- ${name} -->\n\n${made}\n\n<!-- /${name} -->${after}`;
  }, text);

/** The formatter pads the columns. */
const unpadded = (text: string): string => text.replace(/ +/g, ' ').replace(/-{3,}/g, '---');

describe('the tables in docs/', () => {
  it.each(Object.keys(tables))('%s match the code', (file) => {
    const path = join(ROOT, file);
    const found = readFileSync(path, 'utf8');
    const made = withTables(found, file);
    if (writing) writeFileSync(path, made);
    else expect(unpadded(found)).toBe(unpadded(made));
  });
});
