import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const DOCS = join(__dirname, '..', '..', '..', 'docs');

describe('the picture of what it costs', () => {
  const page = readFileSync(join(DOCS, 'costs.md'), 'utf8');
  const picture = readFileSync(join(DOCS, 'costs.svg'), 'utf8');
  const rows = [...page.matchAll(/^\| (GET|PUT): (.+?) +\| ([0-9,]+) +\| ([0-9, ]+) \|$/gm)];

  it('shows the medians of the table beside it, and its runs are there', () => {
    expect(rows).toHaveLength(8);
    expect(page).toContain('](costs.svg)');
    for (const [, , name, median = '', runs = ''] of rows) {
      expect(picture).toContain(`>${name}</text>`);
      expect(picture).toContain(`>${median}</text>`);
      expect(runs.trim().split(', ')).toContain(median);
    }
    expect(picture.match(/<rect /g)).toHaveLength(rows.length);
  });
});
