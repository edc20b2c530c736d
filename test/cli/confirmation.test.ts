import { userInfo } from 'node:os';
import { freshFolder } from '../support/folders';
import { operatorAt } from '../support/operator';
import { startCommand } from '../support/service';
import { until } from '../support/waiting';

const operator = operatorAt(freshFolder());
const { folder } = operator;

const answered = async (line: string, answer: string) => {
  const terminal = { isTerminal: true };
  const { stdin, stderr, done } = startCommand(line.split(' '), { DATA_DIR: folder }, terminal);
  await until(() => stderr().includes('[y/N]'));
  stdin.write(answer);
  return { code: await done, output: stderr() };
};

describe('an irreversible command', () => {
  let tenant = '';
  let application = '';
  beforeAll(async () => {
    tenant = (await operator.json('tenant create --name Precious'))['tenant_id'] ?? '';
    const made = await operator.json(`application create --tenant ${tenant} --name Shop --type public`);
    application = made['application_id'] ?? '';
  });
  const statusOf = async (): Promise<readonly (string | undefined)[]> => [
    (await operator.json(`tenant show ${tenant}`))['status'],
    (await operator.json(`application show --tenant ${tenant} ${application}`))['status'],
  ];

  it('does nothing without a terminal and without --yes', async () => {
    for (const line of [`tenant delete ${tenant}`, `application delete --tenant ${tenant} ${application}`]) {
      const { code, stdout, stderr } = await operator.run(line);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(/^tenant-ledger: [^\n]+ --yes [^\n]+ \[not_confirmed\]\n$/);
    }
    expect(await statusOf()).toEqual(['active', 'active']);
  });

  it('asks for confirmation on a terminal, naming its target', async () => {
    for (const no of ['\n', 'n\n', 'nonsense\n', '\u0003', '\u0004']) {
      const { code, output } = await answered(`tenant delete ${tenant}`, no);
      expect({ no, code }).toEqual({ no, code: 1 });
      expect(output).toContain('"Precious" with 1 Application and every key? This cannot be undone. [y/N]');
      expect(output).toContain('Nothing was deleted.');
    }
    expect(await statusOf()).toEqual(['active', 'active']);
    const deletion = await answered(`application delete --tenant ${tenant} ${application}`, 'y\n');
    expect(deletion).toMatchObject({ code: 0, output: expect.stringContaining('"Shop"') });
    expect((await answered(`tenant delete ${tenant}`, 'yes\n')).code).toBe(0);
    expect(await statusOf()).toEqual(['deleted', 'deleted']);
  });
});

describe('a command that writes', () => {
  const OPERATOR_ID = '7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11';
  const created = async (env: Readonly<Record<string, string>>, ...more: readonly string[]) => {
    const line = ['tenant', 'create', '--name', 'Acme', ...more];
    const { done, stderr, stdout } = startCommand(line, { DATA_DIR: folder, ...env }, { isTerminal: true });
    expect(await done).toBe(0);
    return { stderr: stderr(), stdout: stdout() };
  };

  it('asks operators on a terminal for an id of their own until they have one', async () => {
    const { stderr, stdout } = await created({});
    expect(stdout).toContain('tenant_id');
    expect(stderr).toMatch(/Take an id of your own, once: export OPERATOR_ID=[0-9a-f-]{36}, or --actor /);
    expect((await created({ OPERATOR_ID })).stderr).not.toContain('OPERATOR_ID');
    expect((await created({}, '--actor', OPERATOR_ID)).stderr).not.toContain('OPERATOR_ID');
    expect((await operator.run('tenant create --name Quiet')).stderr).toBe('');
  });

  it('is shown with the OS user of its operator', async () => {
    const { tenant_id = '' } = await operator.json('tenant create --name Acme');
    const { stdout } = await operator.run(`audit --tenant ${tenant_id} --format pretty`);
    expect(stdout).toContain(`by user 00000000-0000-0000-0000-000000000000 (${userInfo().username})`);
  });
});
