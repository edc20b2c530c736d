import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import * as catchUp from '../../src/app/catch-up';
import { fault } from '../../src/fault';
import { openForWriting } from '../../src/sqlite/database';
import { TIMES } from '../../src/times';
import { freshFolder } from '../support/folders';
import { itIf } from '../support/it-if';
import { eventsIn, operatorAt } from '../support/operator';
import { EMBEDDED, storesOf } from '../support/profile';
import { command, commandProcess, serviceProcess } from '../support/service';
import { liveSetFile } from '../support/set-files';

const MAIN = join(__dirname, '..', '..', 'src', 'cli', 'main.js');

describe('a command that writes', () => {
  it('records who ran it: --actor, else OPERATOR_ID, the user of the machine, and who SUDO_USER claims it is', async () => {
    const [actor, operatorId] = [randomUUID(), randomUUID()];
    const folder = freshFolder();
    const { username: osUser } = userInfo();
    await commandProcess(['tenant', 'create', '--name', 'A', '--actor', actor], {
      DATA_DIR: folder,
      SUDO_USER: osUser,
    });
    const asOperator = operatorAt(folder, { OPERATOR_ID: operatorId, SUDO_USER: 'ann' }, commandProcess);
    const made = await asOperator.json('tenant create --name B');
    expect(made['owner_id']).toBe(operatorId);
    const ids = (await eventsIn(folder)).map(({ metadata }) => metadata);
    expect(ids).toMatchObject([
      { actor: { type: 'user', id: actor, osUser } },
      { actor: { type: 'user', id: operatorId, osUser: `${osUser}; SUDO_USER claims ann` } },
    ]);
  });

  it('records --actor, whatever it writes', async () => {
    const [actor, id] = [randomUUID(), randomUUID()];
    const { json, folder } = operatorAt(freshFolder());
    const { tenant_id: tenant } = await json(`tenant create --name A --actor ${actor}`);
    for (const line of [
      `tenant set-plan ${tenant} --included-tokens 1`,
      `application create --tenant ${tenant} --id ${id} --name A --type public`,
      `application rename --tenant ${tenant} ${id} --name B`,
      `application set-permissions --tenant ${tenant} ${id}`,
      `application regenerate --tenant ${tenant} ${id}`,
      `key create --tenant ${tenant} --application ${id}`,
      `application delete --tenant ${tenant} ${id} --yes`,
      `tenant delete ${tenant} --yes`,
    ])
      await json(`${line} --actor ${actor}`);
    const add = `service create --name Gateway --may facts --actor ${actor}`;
    const { service_id: service, key_id: key } = await json(add);
    for (const line of [`key add ${service}`, `key revoke ${key}`, `revoke ${service}`])
      await json(`service ${line} --actor ${actor}`);
    for (const { metadata } of await eventsIn(folder))
      expect(metadata).toMatchObject({ actor: { id: actor } });
  });

  it('counts also if another process has locked the read models, and says that they do not show it; one that reads says how far they are', async () => {
    const operator = operatorAt(freshFolder(), EMBEDDED);
    const { tenant_id: id } = await operator.json('tenant create --name A');
    const times = { ...TIMES, waitMs: 500, tellMs: 200 };
    const impatient = operatorAt(operator.folder, EMBEDDED, (...given: Parameters<typeof commandProcess>) =>
      command(given[0], given[1], '', { times }),
    );
    const lock = openForWriting(liveSetFile(operator.folder), 'NORMAL');
    lock.exec('BEGIN IMMEDIATE');
    const made = await impatient.run(`application create --tenant ${id} --name A --type public --json`);
    const listed = await impatient.run(`application list --tenant ${id} --json`);
    lock.exec('ROLLBACK');
    lock.close();
    expect(made).toMatchObject({ code: 0, stderr: expect.stringContaining('do not show it yet') });
    const { application_id: app } = JSON.parse(made.stdout) as { application_id: string };
    expect(listed).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(
        /^The log is not yet followed to its end: up to position \d+ of \d+\.\n$/,
      ),
    });
    expect(await operator.json(`application show --tenant ${id} ${app}`)).toMatchObject({ name: 'A' });
  });

  it('prints what it made if the read models fail meanwhile, such as the key that is shown once', async () => {
    const operator = operatorAt(freshFolder(), EMBEDDED);
    const { tenant_id: id } = await operator.json('tenant create --name A');
    const failing = async (): Promise<never> => {
      throw fault('read_models_unavailable', 'They are away.');
    };
    const catchingUp = jest.spyOn(catchUp, 'catchingUp').mockReturnValue({ show: failing, catchUp: failing });
    const made = await operator.run(`application create --tenant ${id} --name A --type public --json`);
    catchingUp.mockRestore();
    const stdout: unknown = expect.stringContaining('"key_');
    expect(made).toMatchObject({ code: 0, stdout, stderr: expect.stringContaining('do not show it yet') });
  });

  it('can be run many times at once on a new folder', async () => {
    const operator = operatorAt(join(freshFolder(), 'a', 'b'));
    const made = await Promise.all(
      ['A', 'B', 'C'].map((name) => operator.json(`tenant create --name ${name}`)),
    );
    const listed = await operator.json<{ tenant_id: string }[]>('tenant list');
    expect(listed.map((tenant) => tenant.tenant_id)).toEqual(
      made.map((tenant) => String(tenant['tenant_id'])).toSorted(),
    );
  });
});

const A_UUID = '7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11';

describe('a command on a folder without data', () => {
  const lines = [
    'tenant list',
    `tenant show ${A_UUID}`,
    `tenant set-plan ${A_UUID} --included-tokens 1`,
    `tenant delete --yes ${A_UUID}`,
    `application create --tenant ${A_UUID} --name A --type public`,
    `application list --tenant ${A_UUID}`,
    `key create --tenant ${A_UUID} --application ${A_UUID}`,
    `key list --tenant ${A_UUID}`,
    'ingest',
    'status',
    'projections rebuild',
    'projections verify',
    'projections prune',
    `projections set-aside ${A_UUID} --reason why`,
  ];
  it.each([
    ['none', () => join(freshFolder(), 'not', 'there')],
    ['an empty one', freshFolder],
    [
      'an empty folder of read models',
      () => {
        const folder = freshFolder();
        mkdirSync(join(folder, 'read-models'));
        return folder;
      },
    ],
  ])('says where it looked and how to name another folder, and creates nothing: %s', async (_, choose) => {
    const folder = choose();
    const before = existsSync(folder) ? readdirSync(folder) : undefined;
    const ended = await operatorAt(folder, EMBEDDED).runAll(lines);
    for (const [at, { code, stdout, stderr }] of ended.entries()) {
      expect({ line: lines[at], code, stdout }).toEqual({ line: lines[at], code: 1, stdout: '' });
      expect(stderr).toMatch(/^tenant-ledger: [^\n]+ \[log_not_found\]\n$/);
      for (const text of [` in the folder ${folder}.`, 'DATA_DIR=', 'tenant-ledger tenant create'])
        expect(stderr).toContain(text);
    }
    expect(existsSync(folder) ? readdirSync(folder) : undefined).toEqual(before);
  });

  it('does not create the folder if no data is needed', async () => {
    const other = operatorAt(join(freshFolder(), 'none'));
    for (const line of ['config', 'explain key_refused', '--help', 'tenant show nonsense'])
      await other.run(line);
    expect(existsSync(other.folder)).toBe(false);
  });
});

describe('new data', () => {
  const modesIn = (folder: string): readonly string[] =>
    ['.', ...(readdirSync(folder, { recursive: true }) as string[])].map((name) => {
      const { mode } = statSync(join(folder, name));
      return (mode & 0o777).toString(8);
    });

  it('is private, whatever the umask is', async () => {
    const folder = join(freshFolder(), 'a', 'data');
    const service = await serviceProcess({ DATA_DIR: folder });
    await commandProcess(['projections', 'rebuild'], { DATA_DIR: folder });
    expect(new Set(modesIn(folder))).toEqual(new Set(['700', '600']));
    const TMPDIR = freshFolder();
    expect((await commandProcess(['projections', 'verify'], { DATA_DIR: folder, TMPDIR })).code).toBe(0);
    expect(readdirSync(TMPDIR)).toEqual([]);
    await service.stop();
    expect(statSync(join(folder, '..')).mode & 0o777).toBe(0o700);
  });
});

describe('output that cannot be written', () => {
  const toFull = (line: string) => {
    const full = openSync('/dev/full', 'w');
    const { status, stderr } = spawnSync(process.execPath, [MAIN, ...line.split(' ')], {
      env: { DATA_DIR: folder, ...storesOf(folder) },
      stdio: ['ignore', full, 'pipe'],
      encoding: 'utf8',
    });
    closeSync(full);
    return { status, stderr };
  };
  const folder = freshFolder();
  const onLinux = itIf(existsSync('/dev/full'), 'no /dev/full');

  onLinux('is reported in one sentence, with exit code 1', async () => {
    const { tenant_id: id } = await operatorAt(folder).json('tenant create --name A');
    const lines = ['config', '--help', `audit --tenant ${id}`];
    for (const line of lines) {
      const { status, stderr } = toFull(line);
      expect({ line, status }).toEqual({ line, status: 1 });
      expect(stderr).toMatch(/^tenant-ledger: The output cannot be written: [^\n]+ \[output_failed\]\n$/);
    }
    const { stderr } = toFull('config --json');
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'output_failed' } });
  });
});
