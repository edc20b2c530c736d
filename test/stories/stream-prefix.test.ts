import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { freshFolder } from '../support/folders';
import { TENANT } from '../support/given';
import { operatorAt } from '../support/operator';
import { command, commandProcess } from '../support/service';

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
  `tenant show ${TENANT}`,
  `key list --tenant ${TENANT}`,
  `ingest ${FACTS}`,
  'projections verify',
  'projections rebuild',
];

/** Every command refuses with one sentence and changes nothing in the folder. */
const expectRefused = async (folder: string, wrong: string, right: string): Promise<void> => {
  const before = contentsOf(folder);
  for (const line of COMMANDS) {
    const env = { DATA_DIR: folder, PORT: '0', OPS_PORT: '0', ...OWN_LOG, STREAM_PREFIX: wrong };
    const { code, stdout, stderr } = await command(line.split(' '), env);
    expect({ line, code, stdout }).toEqual({ line, code: 1, stdout: '' });
    expect(stderr).toContain(`have the prefix "${right}", but STREAM_PREFIX is "${wrong}". `);
    expect(stderr).toMatch(/^tenant-ledger: [^\n]* \[log_of_another_prefix\]\n$/);
  }
  expect(contentsOf(folder)).toEqual(before);
};

describe('a data folder with a stream prefix', () => {
  it('is refused under another, and works under its own', async () => {
    const operator = operatorAt(freshFolder(), { ...OWN_LOG, STREAM_PREFIX: 'one-' }, commandProcess);
    await operator.json('tenant create --name Acme');
    await expectRefused(operator.folder, 'other-', 'one-');
    await expectRefused(operator.folder, '', 'one-');
    expect(await operator.json('tenant list')).toHaveLength(1);
  }, 120_000);
});
