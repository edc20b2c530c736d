import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { EXAMPLE, folderOfRelease010 } from '../support/earlier-folder';
import { operatorAt } from '../support/operator';
import { command, startService } from '../support/service';

/** These tests are about the log in the data folder, wherever the other stories keep theirs. */
const OWN_LOG = { EVENTSTORE_URL: '' };
const FACTS = join(__dirname, '..', '..', '..', 'docs', 'facts-example.ndjson');

/** All files in the folder except `-shm` and empty `-wal` files, which SQLite creates even for readers. */
const contentsOf = (folder: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => !name.endsWith('-shm') && statSync(join(folder, name)).isFile())
      .filter((name) => !name.endsWith('-wal') || statSync(join(folder, name)).size > 0)
      .toSorted()
      .map((name) => [
        name,
        createHash('sha256')
          .update(readFileSync(join(folder, name)))
          .digest('hex'),
      ]),
  );

const COMMANDS = [
  'serve',
  'status',
  'tenant list',
  'tenant create --name Another',
  `tenant show ${EXAMPLE}`,
  `key list --tenant ${EXAMPLE}`,
  `ingest ${FACTS}`,
  'projections verify',
  'projections rebuild',
];

/** Every command refuses with one sentence and changes nothing in the folder. */
const expectRefused = async (
  folder: string,
  wrong: string,
  right: string,
  commands = ['serve', 'tenant list'],
): Promise<void> => {
  const before = contentsOf(folder);
  for (const line of commands) {
    const env = { DATA_DIR: folder, PORT: '0', OPS_PORT: '0', ...OWN_LOG, STREAM_PREFIX: wrong };
    const { code, stdout, stderr } = await command(line.split(' '), env);
    expect({ line, code, stdout }).toEqual({ line, code: 1, stdout: '' });
    expect(stderr).toContain(`have the prefix "${right}", but STREAM_PREFIX is "${wrong}". `);
    expect(stderr).toMatch(/^tenant-ledger: [^\n]* \[log_of_another_prefix\]\n$/);
  }
  expect(contentsOf(folder)).toEqual(before);
};

describe('a data folder with a stream prefix', () => {
  it('written by release 0.1.0 is refused under another, and keeps its own from the first start on', async () => {
    const folder = folderOfRelease010();
    await expectRefused(folder, 'other-', '', COMMANDS);
    const operator = operatorAt(folder, { ...OWN_LOG, STREAM_PREFIX: '' });
    expect(await operator.json('tenant list')).toHaveLength(3);
    expect(await (await startService({ ...OWN_LOG, STREAM_PREFIX: '', DATA_DIR: folder })).stop()).toBe(0);
    const db = new DatabaseSync(join(folder, 'events.db'));
    expect(db.prepare(`SELECT value FROM meta WHERE name = 'prefix'`).get()).toEqual({ value: '' });
    db.close();
    await expectRefused(folder, 'other-', '');
  }, 120_000);
});
