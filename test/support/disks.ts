import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { freshFolder } from './folders';

const ran = (name: string, ...args: readonly string[]): boolean => spawnSync(name, args).status === 0;

export const onDisk = async (options: string, work: (disk: string) => Promise<void>): Promise<void> => {
  const folder = join(freshFolder(), 'disk');
  mkdirSync(folder);
  if (!ran('mount', '-t', 'tmpfs', '-o', options, 'tmpfs', folder)) throw new Error('mount was refused');
  try {
    await work(folder);
  } finally {
    ran('umount', '-l', folder);
  }
};

export const makeReadOnly = (disk: string): void => {
  if (!ran('mount', '-o', 'remount,ro', disk)) throw new Error('remount was refused');
};

/** Empty if disks can be mounted here; else the reason why not. */
export const whyNoDisks = ((): string => {
  if (process.platform !== 'linux') return 'not Linux';
  if (process.getuid?.() !== 0) return 'not root';
  const folder = freshFolder();
  const mounts = ran('mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder);
  return mounts && ran('umount', folder) ? '' : 'mount is not allowed';
})();
