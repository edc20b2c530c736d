import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { freshFolder } from './folders';

/** The tests run from dist; the files stay where they were committed. */
const SOURCE = join(__dirname, '..', '..', '..', 'test', 'stories', 'data-folder-0.1.0');

/**
 * A data folder as release 0.1.0 left it after a clean stop, with its write-ahead logs checkpointed. It holds the demo
 * tenant; the tenant EXAMPLE with six facts, 520 renames with the idempotency keys `request-1` to `request-520`, two
 * keys of which the second is revoked, and a snapshot; and one deleted tenant.
 */
export const folderOfRelease010 = (): string => {
  const folder = freshFolder();
  for (const file of readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.gz'),
  )) {
    const target = join(folder, file.slice(0, -'.gz'.length));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, gunzipSync(readFileSync(join(SOURCE, file))), { mode: 0o600 });
  }
  return folder;
};

export const EXAMPLE = '11111111-2222-4333-8444-555555555555';

/** What its clients hold. */
export const keysOfRelease010 = {
  example: 'key_0WCfTonfsFCDyJRADVk41dUVMPuZy2bQfFUijWXZ0U1xIiCdD2t8tYH',
  revoked: 'key_0WCfTonfsFCDyJRADVk41dEpYv0UOiT84ITIk8bOKgfgKAb0w35Ctyg',
  ofDeletedTenant: 'key_12PKxdNbwTAdpP8xEi64JR5ZFWb4xx3V93CeKlKxx6jD6oEFG4FFTuT',
  /** After three of the tenant's own rows; rows of one entity had the tenant's numbers then. */
};
