import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { textOf, type Fact } from './facts';
import { freshFolder } from './folders';

export const fileOf = (lines: readonly (Fact | string)[]): string => {
  const file = join(freshFolder(), 'facts.ndjson');
  writeFileSync(file, textOf(lines));
  return file;
};
