import { spawnSync } from 'node:child_process';

/** Whether there is such a program here. */
export const has = (command: string, ...args: readonly string[]): boolean =>
  spawnSync(command, args).status === 0;
