import { printTable } from '../../src/cli/output';
import type { Io } from '../../src/cli/io';

describe('a table', () => {
  it('may have any number of rows', () => {
    const lines: string[] = [];
    const stdout = { write: (line: string) => lines.push(line) };
    const rows = Array.from({ length: 200_000 }, (_, index) => ({ name: `row ${index}`, number: index }));
    printTable({ stdout } as unknown as Io, rows);
    expect(lines).toHaveLength(rows.length + 1);
    expect([lines[0], lines[1], lines.at(-1)]).toEqual([
      'name        number\n',
      'row 0       0\n',
      'row 199999  199999\n',
    ]);
  });
});
