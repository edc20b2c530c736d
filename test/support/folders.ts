import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const made: string[] = [];

/** A separate folder for one test, removed at the end of the test file. */
export const freshFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-'));
  made.push(folder);
  return folder;
};

const users: (() => Promise<void>)[] = [];

/** What uses the folders has to end before they are removed. */
export const beforeRemoval = (end: () => Promise<void>): void => void users.push(end);

afterAll(async () => {
  try {
    for (const end of users) await end();
  } finally {
    for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
  }
});
