import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freshFolder } from '../support/folders';
import { ROOT } from './pages';

/** A folder for the PATH that has the command `tenant-ledger`. */
export const installed = (): string => {
  const folder = freshFolder();
  const program = join(folder, 'tenant-ledger');
  writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${ROOT}/dist/src/cli/main.js" "$@"\n`);
  chmodSync(program, 0o755);
  return folder;
};
