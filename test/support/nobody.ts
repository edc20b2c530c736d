import { spawnSync } from 'node:child_process';

const ID = { uid: 65_534, gid: 65_534 };
const isRoot = process.getuid?.() === 0;

/** Starts processes as a user without rights, if the tests are run by root, who may do everything. */
export const nobody: Partial<typeof ID> = isRoot ? ID : {};

/** Empty if there can be processes without rights here; else the reason why not. */
export const whyNoUsers = ((): string => {
  if (process.getuid === undefined) return 'no users';
  return spawnSync(process.execPath, ['--version'], nobody).status === 0 ? '' : 'Node is not for all users';
})();
