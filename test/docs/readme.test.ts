import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { campaigns } from '../campaigns';
import { blocks, ROOT, textOf } from './pages';

const CONTRIBUTING = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8');

describe('README.md', () => {
  it('has at most 120 lines', () => {
    expect(textOf('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(120);
  });

  it('has a layout of folders that exist', () => {
    const [layout = ''] = blocks('README.md', 'text');
    const folders = layout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(' ')[0] ?? '');
    expect(folders.length).toBe(10);
    expect(folders.filter((folder) => !existsSync(join(ROOT, folder)))).toEqual([]);
  });
});

describe('CONTRIBUTING.md', () => {
  it('lists every campaign', () => {
    const listed = Array.from(
      CONTRIBUTING.matchAll(/^\| `npm run campaign -- ([a-z-]+)`/gm),
      ([, name = '']) => name,
    );
    expect(listed.toSorted()).toEqual(Object.keys(campaigns).toSorted());
  });

  it('lists the folders that exist, all of them', () => {
    const section = CONTRIBUTING.split('\n## Where things are\n')[1]?.split('\n## ')[0] ?? '';
    const rows = section.split('\n').filter((line) => line.startsWith('| `'));
    const listed = rows.flatMap((row) =>
      [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map((m) => m[1] ?? ''),
    );
    expect(listed.filter((place) => !existsSync(join(ROOT, place)))).toEqual([]);
    const folders = readdirSync(join(ROOT, 'src'), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => `src/${name}`);
    expect(listed).toEqual(expect.arrayContaining(['projections', ...folders]));
  });
});

describe('docs/README.md', () => {
  it('leads to every page', () => {
    const map = textOf('docs/README.md');
    const names = readdirSync(join(ROOT, 'docs')).filter(
      (name) => name.endsWith('.md') && name !== 'README.md',
    );
    expect(names.filter((name) => !map.includes(`](${name}`))).toEqual([]);
  });
});
