import { settingNames } from '../../src/configuration';
import { freshFolder } from '../support/folders';
import { operatorAt } from '../support/operator';

const A_UUID = '7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11';

/** A line, and what the refusal says. */
const wrong: readonly (readonly [line: string, ...says: readonly string[]])[] = [
  ['', 'Usage: tenant-ledger', 'serve', 'explain'],
  ['tenant', 'Usage: tenant-ledger tenant', 'set-plan'],
  ['tennant list', "unknown command 'tennant'", 'Did you mean tenant?'],
  ['tenant lost', "unknown command 'lost'", 'Did you mean list?'],
  // One name for each thing.
  ['tenant help', "unknown command 'help'"],
  ['tenant list -h', "unknown option '-h'"],
  ['serve now', 'too many arguments'],
  ['tenant list --jsno', "unknown option '--jsno'", 'Did you mean --json?'],
  ['tenant create --nam A', "unknown option '--nam'", 'Did you mean --name?'],
  ['tenant create', "'--name <name>' not specified"],
  ['tenant create --name A --id 12', '--id', "'12'", 'must be a UUID, for example'],
  ['tenant create --name A --actor me', '--actor', "'me'", 'must be a UUID'],
  ['tenant create --name A --included-tokens -1', '--included-tokens', 'whole number'],
  ['tenant create --name A --included-tokens 1e3', "'1e3'", 'whole number'],
  ['tenant show', "missing required argument 'tenant-id'"],
  [
    `application create --tenant ${A_UUID} --name A --type root`,
    "'root'",
    'Allowed choices are public, private, management',
  ],
  [
    `key create --tenant ${A_UUID} --application ${A_UUID} --expires tomorrow`,
    "'tomorrow'",
    'must be a time like 2031-01-31T12:00:00Z, or a date like 2031-01-31',
  ],
  [`key revoke --tenant ${A_UUID} key_1`, 'Pass the key on stdin', 'tenant-ledger key revoke < FILE'],
  [`key revoke --tenant ${A_UUID} one`, "'one'", 'must be a UUID'],
  [
    `application regenerate ${A_UUID} --tenant ${A_UUID} --grace 31536001`,
    '--grace',
    "'31536001'",
    'at most 31536000',
  ],
  ['log copy --from a', "'--to <address>' not specified"],
  [`audit --tenant ${A_UUID} --since 2026-02-01 --until 2026-01-31`, '--since must not be after --until'],
];

describe('the command line', () => {
  const { run } = operatorAt(freshFolder());

  /** The command itself and those that its help lists, all of which have a help of their own. */
  const explained = async (line = ''): Promise<readonly string[]> => {
    const { code, stdout, stderr } = await run(`${line} --help`);
    expect([line, code, stderr]).toEqual([line, 0, '']);
    expect(stdout).toContain(`Usage: tenant-ledger ${line}`.trimEnd());
    const listed = (stdout.split('\nCommands:\n')[1] ?? '').matchAll(/^ {2}([a-z-]+)/gm);
    const found = [line];
    for (const [, name] of listed) found.push(...(await explained(`${line} ${name}`.trim())));
    return found;
  };

  it('explains every command with --help', async () => {
    const commands = await explained();
    expect(commands.length).toBeGreaterThan(40);
    expect(commands).toEqual(expect.arrayContaining(['serve', 'tenant set-plan', 'service key revoke']));
    for (const line of ['key find', 'key revoke', 'service key revoke'])
      expect((await run(`${line} --help`)).stdout).toContain('stdin');
  });

  it('prints the version', async () => {
    expect(await run('--version')).toEqual({ code: 0, stdout: '0.1.0\n', stderr: '' });
  });

  it.each(wrong)('refuses %j with exit code 2, a reason and no output', async (line, ...says) => {
    const { code, stdout, stderr } = await run(line);
    expect([code, stdout]).toEqual([2, '']);
    for (const text of says) expect(stderr).toContain(text);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it.each(wrong)('refuses %j with JSON on stderr if --json was given', async (line) => {
    const { code, stdout, stderr } = await run(`${line} --json`);
    expect([code, stdout]).toEqual([2, '']);
    const { error } = JSON.parse(stderr) as { error: object };
    expect(error).toEqual({ code: 'wrong_usage', message: expect.stringMatching(/^(?!error: )./) });
  });

  it('separates the name of every setting from its description, and has the defaults', async () => {
    const { stdout } = await run('serve --help');
    for (const name of settingNames) expect(stdout).toMatch(new RegExp(`^  ${name} {2,}[A-Z]`, 'm'));
    expect(stdout).toContain('Default: 8080');
  });
});
