import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

export const filesWith = (text: string, folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true })
    .map(String)
    .filter(
      (name) => statSync(join(folder, name)).isFile() && readFileSync(join(folder, name)).includes(text),
    );
