import { join } from 'node:path';
import { freshFolder } from '../support/folders';
import { operatorAt } from '../support/operator';

const NAME = 'a\u001b[2J\u0007\nb';
const SHOWN = 'a\\u001b[2J\\u0007\\u000ab';

it('escapes control characters in a name instead of printing them, except in JSON', async () => {
  const operator = operatorAt(freshFolder());
  const { tenant_id: tenant } = await operator.json('tenant create --name', NAME);
  const shown = await operator.run(`tenant show ${tenant}`);
  const listed = await operator.run('tenant list');
  for (const { stdout } of [shown, listed]) {
    expect(stdout).toContain(SHOWN);
    expect(stdout).not.toContain('\u001b');
  }
  expect(await operator.json(`tenant show ${tenant}`)).toMatchObject({ name: NAME });
});

it('states in one sentence why a file of facts cannot be read', async () => {
  const operator = operatorAt(freshFolder());
  await operator.json('tenant create --name A');
  const missing = join(operator.folder, 'missing.ndjson');
  expect(await operator.run(`ingest ${missing}`)).toMatchObject({
    code: 1,
    stderr: `tenant-ledger: The file ${missing} does not exist. [file_unreadable]\n`,
  });
  expect(await operator.run(`ingest ${operator.folder}`)).toMatchObject({
    code: 1,
    stderr: `tenant-ledger: The file ${operator.folder} is a folder. [file_unreadable]\n`,
  });
});
