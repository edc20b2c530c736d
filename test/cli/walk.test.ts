import { randomUUID } from 'node:crypto';
import { permissionsOf } from '../../src/domain/authority';
import { beforeTests } from '../support/before-tests';
import { freshFolder } from '../support/folders';
import { operatorAt, type Operator } from '../support/operator';
import { startService } from '../support/service';

/** Every command that works on data, once with --json and once with readable output, on the same data. */
const places: readonly {
  where: string;
  open: () => Promise<Operator>;
}[] = [
  {
    where: 'on data without a server',
    open: async () => operatorAt(freshFolder()),
  },
  {
    where: 'beside a running server',
    open: async () => operatorAt((await startService()).folder),
  },
];

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const UUID = expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
const KEY = expect.stringMatching(/^key_[0-9A-Za-z]{55}$/);
const NIL = '00000000-0000-0000-0000-000000000000';

describe.each(places)('the command line $where', ({ open }) => {
  const id = randomUUID();
  const owner = randomUUID();
  const operator = beforeTests(open);

  it('creates, shows, lists, changes and deletes a tenant', async () => {
    const created = await operator.json(
      `tenant create --id ${id} --owner ${owner.toUpperCase()} --included-tokens 5 --name`,
      'Ünï & Co',
    );
    expect(created).toEqual({
      tenant_id: id,
      name: 'Ünï & Co',
      owner_id: owner,
      included_monthly_active_tokens: 5,
    });
    const whole = {
      ...created,
      status: 'active',
      fingerprint_tokens: false,
      deduplicate_tokens: false,
      created_at: TIME,
      modified_at: null,
      deleted_at: null,
    };
    expect(await operator.json(`tenant show ${id}`)).toEqual(whole);
    const planned = { ...whole, included_monthly_active_tokens: 7 };
    expect(await operator.json(`tenant set-plan ${id} --included-tokens 7`)).toEqual(planned);
    expect(await operator.json<unknown[]>('tenant list')).toContainEqual(planned);

    const plain = await operator.run('tenant create --name Plain');
    expect(plain).toMatchObject({ code: 0, stderr: '' });
    const other = /^tenant_id: +(\S+)$/m.exec(plain.stdout)?.[1] ?? '';
    expect(plain.stdout).toMatch(new RegExp(`^owner_id: +${NIL}$`, 'm'));
    expect(await operator.json(`tenant delete --yes ${other}`)).toEqual({
      tenant_id: other,
      status: 'deleted',
    });
    expect(await operator.json(`tenant show ${other}`)).toMatchObject({
      status: 'deleted',
      deleted_at: TIME,
    });
    const list = (await operator.run('tenant list')).stdout.split('\n');
    expect(list[0]).toMatch(/^tenant_id +name +status +created_at$/);
    expect(list.find((line) => line.startsWith(other))).toMatch(/ Plain +deleted /);
  });

  it('creates, shows, lists, changes and deletes an Application', async () => {
    const created = await operator.json(
      `application create --tenant ${id} --name Web --type private --permission token:create --permission token:create`,
    );
    expect(created).toEqual({
      tenant_id: id,
      application_id: UUID,
      name: 'Web',
      type: 'private',
      permissions: ['token:create'],
      key_id: UUID,
      expires_at: null,
      key: KEY,
    });
    const app = created['application_id'];
    const whole = {
      application_id: app,
      name: 'Web',
      type: 'private',
      status: 'active',
      created_at: TIME,
      permissions: ['token:create'],
    };
    const named = `--tenant ${id} ${app}`;
    const holdable = permissionsOf('private').map((permission) => permission.type);
    expect(await operator.json(`application show ${named}`)).toEqual({
      ...whole,
      may_also_hold: holdable.filter((permission) => permission !== 'token:create'),
      keys: [
        {
          key_id: created['key_id'],
          application_id: app,
          name: null,
          status: 'active',
          created_at: TIME,
          expires_at: null,
          revoked_at: null,
          last_used_at: null,
        },
      ],
    });
    const renamed = { ...whole, name: 'Shop' };
    expect(await operator.json(`application rename ${named} --name Shop`)).toEqual(renamed);
    const bare = { ...renamed, permissions: [] };
    expect(await operator.json(`application set-permissions ${named}`)).toEqual(bare);
    const listed = { ...bare, live_keys: 1, last_used_at: null, may_also_hold: holdable };
    expect(await operator.json(`application list --tenant ${id}`)).toEqual([listed]);
    const shown = await operator.run(`application show ${named}`);
    expect(shown.stdout).toMatch(new RegExp(`^application_id: +${app}\nname: +Shop\n`));
    expect(shown.stdout).toMatch(
      new RegExp(`\nmay_also_hold: +token:create .*\nkey_id .*\n${created['key_id']} `),
    );
    const gone = { application_id: app, status: 'deleted' };
    expect(await operator.json(`application delete --yes ${named}`)).toEqual(gone);
    expect(await operator.json(`application list --tenant ${id}`)).toEqual([
      { ...listed, status: 'deleted', live_keys: 0 },
    ]);
    expect(await operator.json(`key list --tenant ${id}`)).toMatchObject([{ status: 'application_deleted' }]);
  });

  it('creates, lists and revokes keys', async () => {
    const { application_id: app, key_id: first } = await operator.json(
      `application create --tenant ${id} --name Keys --type public --expires 2031-01-31`,
    );
    const line = `key create --tenant ${id} --application ${app}`;
    const second = await operator.json(`${line} --name Second --expires 2031-01-31T12:00:00+01:00`);
    const expires_at = '2031-01-31T11:00:00.000Z';
    expect(second).toEqual({ application_id: app, key_id: UUID, name: 'Second', expires_at, key: KEY });
    const plain = (await operator.run(line)).stdout;
    expect(plain).toMatch(/^key: +key_[0-9A-Za-z]{55}$/m);
    const third = /^key_id: +(\S+)$/m.exec(plain)?.[1];
    expect(await operator.json(`key revoke --tenant ${id} ${second['key_id']}`)).toEqual({
      key_id: second['key_id'],
      status: 'revoked',
    });
    const listed = await operator.json<{ key_id: string }[]>(`key list --tenant ${id} --application ${app}`);
    const common = { application_id: app, created_at: TIME, revoked_at: null };
    const rows = new Map(listed.map((row) => [row.key_id, row]));
    expect(rows.size).toBe(3);
    expect(rows.get(first ?? '')).toMatchObject({
      ...common,
      status: 'active',
      expires_at: '2031-01-31T00:00:00.000Z',
    });
    expect(rows.get(third ?? '')).toMatchObject({ ...common, status: 'active', expires_at: null });
    expect(rows.get(second['key_id'] ?? '')).toEqual({
      ...common,
      key_id: second['key_id'],
      name: 'Second',
      status: 'revoked',
      expires_at,
      revoked_at: TIME,
      last_used_at: null,
    });
    const owned = `--tenant ${id} ${app}`;
    const renewed = await operator.json(`application regenerate ${owned} --grace 3600 --expires 2031-01-31`);
    const { keys } = await operator.json<{ keys: readonly object[] }>(`application show ${owned}`);
    expect(keys).toHaveLength(4);
    const added = { key_id: renewed['key_id'], expires_at: '2031-01-31T00:00:00.000Z' };
    for (const key of [added, { key_id: third, expires_at: TIME }])
      expect(keys).toContainEqual(expect.objectContaining(key));
    const all = await operator.json<{ live_keys: number }[]>(`application list --tenant ${id}`);
    expect(new Set(all.map(({ live_keys }) => live_keys))).toEqual(new Set([0, 3]));
    expect(JSON.stringify(listed)).not.toContain('key_"');
    expect(JSON.stringify(listed)).not.toContain(second['key']);
  });

  it('shows the status', async () => {
    const status = await operator.json<Record<string, unknown>>('status');
    const { head } = status['log'] as { head: string };
    expect(status).toMatchObject({
      log: { identity: UUID, head: expect.any(String) },
      read_models: {
        set: expect.stringMatching(/^[0-9a-f]{16}$/),
        position: head,
        lag_events: 0,
        lag_seconds: 0,
        parked: [],
        building: null,
      },
      unreadable: [],
    });
    const plain = (await operator.run('status')).stdout;
    expect(plain).toMatch(/^store: +\S.*\nlog: +[0-9a-f-]{36}\nhead: +\S+\n/);
    expect(plain).toMatch(/^not_yet_followed: +nothing$/m);
  });
});

describe('the command line without data', () => {
  const operator = operatorAt(freshFolder(), { HEADER_PREFIX: 'ACME', SECRET: 'x'.repeat(32) });

  it('explains the error codes', async () => {
    expect((await operator.run('explain key_refused')).stdout).toMatch(/^code: +key_refused\nstatus: +401\n/);
  });

  it('lists the settings, with where each value comes from', async () => {
    const rows = await operator.json<unknown[]>('config');
    expect(rows).toContainEqual(expect.objectContaining({ name: 'SECRET', value: '(set)' }));
    expect(rows).toContainEqual({
      name: 'HEADER_PREFIX',
      value: 'ACME',
      source: 'environment',
      meaning: expect.any(String),
    });
    expect(rows).toContainEqual({
      name: 'PORT',
      value: 8080,
      source: 'default',
      meaning: expect.any(String),
    });
    expect((await operator.run('config')).stdout).toMatch(/^HEADER_PREFIX +ACME +environment +The /m);
  });
});
