import { accessSync, constants, statfsSync } from 'node:fs';

const IN_MEMORY = '/dev/shm';
const ENOUGH_BYTES = 2 * 1024 ** 3;

/** Every commit of a test waits for the disk, which may be busy. In memory a killed process loses nothing either. */
export const useMemoryForFiles = (): void => {
  if (process.env['TMPDIR'] !== undefined) return;
  try {
    accessSync(IN_MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(IN_MEMORY);
    if (bavail * bsize >= ENOUGH_BYTES) process.env['TMPDIR'] = IN_MEMORY;
  } catch {
    // Not available: files stay in the temporary folder.
  }
};
