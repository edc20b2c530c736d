import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const packageJson = (folder: string): string =>
  existsSync(join(folder, 'package.json')) ? join(folder, 'package.json') : packageJson(join(folder, '..'));

export const programVersion = (): string =>
  (JSON.parse(readFileSync(packageJson(__dirname), 'utf8')) as { version: string }).version;
