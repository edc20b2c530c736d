import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freshFolder } from './folders';

const DIST = join(__dirname, '..', '..');
const ROOT = join(DIST, '..');

/** A change to one file of the build: each text must be there and is replaced by the next one, or text is added. */
interface Edit {
  readonly file: string;
  readonly replaced?: readonly (readonly [before: string, after: string])[];
  readonly added?: string;
}

/** Another release of the program: the same build except for these edits. Returns its main file. */
export const releaseWith = (version: string, edits: readonly Edit[]): string => {
  const folder = freshFolder();
  for (const part of ['src', 'projections', 'portal'])
    cpSync(join(DIST, part), join(folder, 'dist', part), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ version }));
  for (const { file, replaced = [], added = '' } of edits) {
    const path = join(folder, 'dist', file);
    let text = readFileSync(path, 'utf8');
    for (const [before, after] of replaced) {
      expect(text).toContain(before);
      text = text.replaceAll(before, after);
    }
    writeFileSync(path, `${text}\n${added}`);
  }
  return join(folder, 'dist', 'src', 'cli', 'main.js');
};
