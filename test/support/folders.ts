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

afterAll(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
});
