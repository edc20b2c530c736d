import { spawnSync } from 'node:child_process';

export const has = (command: string, ...args: readonly string[]): boolean =>
  spawnSync(command, args).status === 0;
