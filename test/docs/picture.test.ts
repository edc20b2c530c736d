import { textOf } from './pages';

describe('the picture of what it costs', () => {
  const page = textOf('docs/costs.md');
  const picture = textOf('docs/costs.svg');
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
