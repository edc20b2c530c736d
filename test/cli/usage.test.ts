import { settingNames } from '../../src/configuration';
import { freshFolder } from '../support/folders';
import { operatorAt } from '../support/operator';

const commands: Readonly<Record<string, readonly string[]>> = {
  serve: ['DATA_DIR', 'PORT', 'OPS_PORT', 'OPERATOR_ID', 'Default: 8080'],
  tenant: ['create', 'list', 'show', 'set-plan', 'delete'],
  'tenant create': ['--name', '--id', '--owner', '--included-tokens', '--actor', '--json'],
  'tenant list': ['--json'],
  'tenant show': ['<tenant-id>', '--json'],
  'tenant set-plan': ['<tenant-id>', '--included-tokens', '--actor', '--json'],
  'tenant delete': ['<tenant-id>', '--yes', '--actor', '--json'],
  application: ['create', 'list', 'show', 'rename', 'set-permissions', 'regenerate', 'delete'],
  'application create': ['--tenant', '--name', '--type', '--permission', '--expires', '--actor', '--json'],
  'application list': ['--tenant', '--json'],
  'application show': ['<application-id>', '--tenant', '--json'],
  'application rename': ['<application-id>', '--tenant', '--name', '--actor', '--json'],
  'application set-permissions': ['<application-id>', '--tenant', '--permission', '--actor', '--json'],
  'application regenerate': ['<application-id>', '--tenant', '--grace', '--expires', '--actor', '--json'],
  'application delete': ['<application-id>', '--tenant', '--yes', '--actor', '--json'],
  key: ['create', 'list', 'find', 'revoke'],
  'key create': ['--tenant', '--application', '--name', '--expires', '--actor', '--json'],
  'key list': ['--tenant', '--application', '--json'],
  'key find': ['stdin', '--json'],
  'key revoke': ['[key-id]', 'stdin', '--tenant', '--actor', '--json'],
  service: ['create', 'list', 'show', 'revoke', 'key'],
  'service create': ['--name', '--may', '--expires', '--actor', '--json'],
  'service list': ['--json'],
  'service show': ['<service-id>', '--json'],
  'service revoke': ['<service-id>', '--actor', '--json'],
  'service key add': ['<service-id>', '--expires', '--actor', '--json'],
  'service key revoke': ['[key-id]', 'stdin', '--actor', '--json'],
  evidence: ['checkpoints', 'key', 'verify'],
  'evidence checkpoints': ['--tenant', '--output', '--json'],
  'evidence key': ['--tenant', '--json'],
  'evidence verify': ['[export]', '--checkpoint', '--earlier', '--event', '--proof', '--key', '--json'],
  log: ['copy'],
  'log copy': ['--from', '--to', '--json'],
  'log verify': ['[address]', '--json'],
  backup: ['create', 'verify', 'restore'],
  'backup create': ['<folder>', '--json'],
  'backup verify': ['<folder>', '--json'],
  'backup restore': ['<folder>', '--json'],
  demo: ['--json', 'another tenant'],
  status: ['--json'],
  doctor: ['--json'],
  explain: ['<code>', '--json'],
  config: ['--json'],
};

const A_UUID = '7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11';

const wrong: readonly { line: string; says: readonly string[] }[] = [
  { line: '', says: ['Usage: tenant-ledger', 'serve', 'explain'] },
  { line: 'tenant', says: ['Usage: tenant-ledger tenant', 'set-plan'] },
  { line: 'tennant list', says: ["unknown command 'tennant'", 'Did you mean tenant?'] },
  { line: 'tenant lost', says: ["unknown command 'lost'", 'Did you mean list?'] },
  // One name for each thing.
  { line: 'tenant help', says: ["unknown command 'help'"] },
  { line: 'tenant list -h', says: ["unknown option '-h'"] },
  { line: 'serve now', says: ['too many arguments'] },
  { line: 'tenant list --jsno', says: ["unknown option '--jsno'", 'Did you mean --json?'] },
  { line: 'tenant create --nam A', says: ["unknown option '--nam'", 'Did you mean --name?'] },
  { line: 'tenant create', says: ["'--name <name>' not specified"] },
  { line: 'tenant create --name A --id 12', says: ['--id', "'12'", 'must be a UUID, for example'] },
  { line: 'tenant create --name A --actor me', says: ['--actor', "'me'", 'must be a UUID'] },
  { line: 'tenant create --name A --included-tokens -1', says: ['--included-tokens', 'whole number'] },
  { line: 'tenant create --name A --included-tokens 1e3', says: ["'1e3'", 'whole number'] },
  { line: 'tenant show', says: ["missing required argument 'tenant-id'"] },
  {
    line: `application create --tenant ${A_UUID} --name A --type root`,
    says: ["'root'", 'Allowed choices are public, private, management'],
  },
  {
    line: `key create --tenant ${A_UUID} --application ${A_UUID} --expires tomorrow`,
    says: ["'tomorrow'", 'must be a time like 2031-01-31T12:00:00Z, or a date like 2031-01-31'],
  },
  {
    line: `key revoke --tenant ${A_UUID} key_1`,
    says: ['Pass the key on stdin', 'tenant-ledger key revoke < FILE'],
  },
  { line: `key revoke --tenant ${A_UUID} one`, says: ["'one'", 'must be a UUID'] },
  {
    line: `application regenerate ${A_UUID} --tenant ${A_UUID} --grace 31536001`,
    says: ['--grace', "'31536001'", 'at most 31536000'],
  },
  { line: 'log copy --from a', says: ["'--to <address>' not specified"] },
  {
    line: `audit --tenant ${A_UUID} --since 2026-02-01 --until 2026-01-31`,
    says: ['--since must not be after --until'],
  },
];

describe('the command line', () => {
  const { run, runAll } = operatorAt(freshFolder());

  it('explains every command with --help', async () => {
    const helps = await runAll(Object.keys(commands).map((line) => `${line} --help`));
    expect(helps.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
      helps.map(() => ({ code: 0, stderr: '' })),
    );
    for (const [at, [line, named]] of Object.entries(commands).entries()) {
      const text = helps[at]?.stdout ?? '';
      expect(text).toContain(`Usage: tenant-ledger ${line}`);
      for (const name of named) expect({ line, text }).toEqual({ line, text: expect.stringContaining(name) });
    }
  });

  it('lists every command in its help, and prints the version', async () => {
    const [help, version] = await Promise.all([run('--help'), run('--version')]);
    for (const line of Object.keys(commands)) expect(help.stdout).toContain(line.split(' ')[0]);
    expect(version).toEqual({ code: 0, stdout: '0.1.0\n', stderr: '' });
  });

  it('refuses wrong usage with exit code 2, a reason and no output', async () => {
    const ended = await runAll(wrong.map(({ line }) => line));
    for (const [at, { line, says }] of wrong.entries()) {
      const { code, stdout, stderr } = ended[at] ?? {};
      expect({ line, code, stdout }).toEqual({ line, code: 2, stdout: '' });
      for (const text of says)
        expect({ line, stderr }).toEqual({ line, stderr: expect.stringContaining(text) });
      expect(stderr).not.toMatch(/^\s+at /m);
    }
  });

  it('refuses wrong usage with JSON on stderr if --json was given', async () => {
    const lines = wrong.map(({ line }) => line);
    const ended = await runAll(lines.map((line) => `${line} --json`));
    for (const [at, { code, stdout, stderr }] of ended.entries()) {
      expect({ line: lines[at], code, stdout }).toEqual({ line: lines[at], code: 2, stdout: '' });
      const { error } = JSON.parse(stderr) as { error: { code: string; message: string } };
      expect(error).toEqual({ code: 'wrong_usage', message: expect.stringMatching(/^(?!error: )./) });
    }
  });

  it('separates the name of every setting from its description', async () => {
    const { stdout } = await run('serve --help');
    for (const name of settingNames) expect(stdout).toMatch(new RegExp(`^  ${name} {2,}[A-Z]`, 'm'));
  });
});
