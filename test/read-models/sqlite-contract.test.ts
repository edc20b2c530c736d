import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sqliteReadModels } from '../../src/read-models/sqlite/sqlite-read-models';
import { describeReadModels } from './contract/read-models';

describeReadModels('SQLite', async () => {
  const parent = mkdtempSync(join(tmpdir(), 'sets-'));
  return {
    open: async (options) => sqliteReadModels({ ...options, folder: join(parent, 'read-models') }),
    discard: async () => rmSync(parent, { recursive: true }),
  };
});
