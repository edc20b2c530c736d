import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beside } from '../support/beside';
import { freshFolder } from '../support/folders';
import { ask } from '../support/http';
import { has } from '../support/programs';
import { serviceForTests } from '../support/service';
import { installed } from './installed';
import { blocks, ROOT } from './pages';

const run = promisify(execFile);

/** In this order: the first makes the tenant that others name. */
const scripts: Readonly<Record<string, readonly string[]>> = {
  'README.md': blocks('README.md', 'sh'),
  'docs/logs-and-usage.md': blocks('docs/logs-and-usage.md', 'sh'),
  'docs/backup.md': blocks('docs/backup.md', 'sh'),
  'docs/first-fifteen-minutes.md': blocks('docs/first-fifteen-minutes.md', 'sh'),
  'docs/keys.md': blocks('docs/keys.md', 'sh'),
  'docs/evidence.md': blocks('docs/evidence.md', 'sh'),
  'docs/shipping.md': blocks('docs/shipping.md', 'sh'),
};

/** A reader's shell stops at the first command that fails, also at an error of the API. */
const PREAMBLE = 'set -e\ncurl() { command curl --fail-with-body "$@"; }\n';

describe('the commands work as written, one after the other', () => {
  const service = serviceForTests();
  let env: Readonly<Record<string, string>>;
  let leaked: () => Promise<string>;

  beforeAll(async () => {
    const by = await beside(service);
    const get = async (path: string) => (await ask(`${service.url}${path}`, { key: service.key })).json;
    const { id: TENANT } = await get('/tenants/self');
    const { key_id: KEY_ID } = await get('/applications/key');
    leaked = async () => (await by.newOwner(TENANT)).key;
    const EVENT = (await get('/logs?size=1')).data[0].id;
    env = { PATH: `${installed()}:${process.env['PATH']}`, DATA_DIR: service.folder, URL: service.url };
    env = { ...env, KEY: service.key, TENANT, KEY_ID, EVENT };
  });

  it.each(Object.entries(scripts))('of %s', async (page, texts) => {
    const folder = freshFolder();
    const LEAKED = await leaked();
    writeFileSync(join(folder, 'leaked.txt'), `found in a build log: "${LEAKED}"\n`);
    writeFileSync(join(folder, 'facts.ndjson'), blocks('docs/logs-and-usage.md', 'json').join(''));
    const isRun = (text: string) => !text.includes('jq ') || has('jq', '--version');
    const here = texts
      .filter(isRun)
      .join('\n')
      .replaceAll('http://127.0.0.1:8080', service.url)
      .replaceAll('http://127.0.0.1:8081', service.operationsUrl)
      .replaceAll('npx tenant-ledger', 'tenant-ledger')
      .replace(/^export KEY=.*$/m, '')
      // It fails where the disk of the tests is nearly full.
      .replace('tenant-ledger doctor', 'tenant-ledger doctor || test $? = 1')
      .replaceAll('/backups/', `${folder}/`)
      .replaceAll('DATA_DIR=/var/lib/tenant-ledger', `DATA_DIR=${folder}/restored`)
      .replaceAll('docs/', `${ROOT}/docs/`);
    const before = page.includes('fifteen') ? `tenant-ledger backup create ${folder}/ledger\n` : '';
    const { stdout } = await run('sh', ['-c', `${PREAMBLE}${before}${here}`], {
      env: { ...env, LEAKED },
      cwd: folder,
    });
    expect(stdout.includes('"errors"')).toBe(false);
  });
});
