import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { fact, reportFacts } from '../support/reported-facts';
import { freshFolder } from '../support/folders';
import { openLogIn } from '../support/log-under-test';
import { operatorAt } from '../support/operator';
import { spawnProgram, startCommand, startService, type Service } from '../support/service';
import { until } from '../support/waiting';

const NOBODY = '7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11';

interface Row {
  readonly id: string;
  readonly entity_type: string;
  readonly message: string;
  readonly created_at: string;
}

const rowsIn = (stdout: string): readonly Row[] =>
  stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Row);

const following = (folder: string, ...args: readonly string[]) =>
  startCommand(['logs', ...args, '--follow'], { DATA_DIR: folder });

const OPERATOR = '00000000-0000-0000-0000-000000000000';

/** A tenant recorded at an earlier time, so that its later events may be in the past as well. */
const tenantMadeAt = async (folder: string, recordedAt: string): Promise<string> => {
  const { log, streams } = await openLogIn(folder);
  const tenantId = randomUUID();
  const settings = { fingerprintTokens: false, deduplicateTokens: false };
  const data = { name: 'A', ownerId: OPERATOR, settings, includedMonthlyActiveTokens: 0 };
  const metadata = { version: 1, at: recordedAt, actor: { type: 'user', id: OPERATOR } };
  const event = { id: randomUUID(), type: 'TenantCreated', data, metadata, recordedAt };
  await log.append(streams.tenant(tenantId), [event], 'no_stream');
  await log.close();
  return tenantId;
};

describe('tenant-ledger logs', () => {
  const operator = operatorAt(freshFolder());
  const { folder } = operator;
  let tenant: string;
  let ids: readonly string[];
  beforeAll(async () => {
    await operator.json('tenant create --name Another');
    tenant = await tenantMadeAt(folder, '2020-01-01T00:00:00.000Z');
    const reported: readonly (readonly [string, string, string])[] = [
      ['TokenCreated', 'a', '2021-01-31T10:00:00.000Z'],
      ['CardCreated', 'a', '2021-01-31T11:00:00.000Z'],
      ['TokenRead', 'b', '2021-01-31T12:00:00.000Z'],
      ['TokenUsed', 'a', '2021-02-01T00:00:00.000Z'],
    ];
    ids = await reportFacts(
      folder,
      tenant,
      reported.map(([type, entityId, recordedAt]) => fact(type, entityId, { recordedAt })),
    );
  });
  const logs = (...args: readonly string[]) => operator.run(`logs --tenant ${tenant}`, ...args);
  const printed = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await logs(...args, '--json');
    expect([code, stderr]).toEqual([0, '']);
    return rowsIn(stdout)
      .map((row) => ids.indexOf(row.id))
      .filter((place) => place >= 0);
  };

  it('prints readable lines, oldest first', async () => {
    const { code, stdout, stderr } = await logs();
    expect([code, stderr]).toEqual([0, '']);
    const lines = stdout.trimEnd().split('\n');
    expect(lines).toHaveLength(5);
    expect(lines[0]).toMatch(
      new RegExp(`^\\S+Z {2}tenant/${tenant} {2}create {2}Tenant created {2}by user 00000000-`),
    );
    expect(lines[4]).toBe('2021-02-01T00:00:00.000Z  token/a  use  Token used  by somebody');
  });

  it('prints one row per line as JSON, with the fields of the API', async () => {
    const { stdout } = await logs('--json');
    const rows = rowsIn(stdout);
    expect(rows.slice(1).map((row) => row.id)).toEqual(ids);
    expect(rows[1]).toEqual({
      id: ids[0],
      tenant_id: tenant,
      entity_type: 'token',
      entity_id: 'a',
      operation: 'create',
      message: 'Token created',
      created_at: '2021-01-31T10:00:00.000Z',
    });
  });

  it.each<[readonly string[], readonly number[]]>([
    [
      ['--entity-type', 'Token'],
      [0, 2, 3],
    ],
    [
      ['--entity-id', 'a'],
      [0, 1, 3],
    ],
    [
      ['--since', '2021-01-31T12:30:00+01:30', '--until', '2021-02-01'],
      [1, 2],
    ],
    [['--since', '2021-01-31T11:00:00Z', '--entity-type', 'token', '--entity-id', 'a'], [3]],
    [['--since', '2021-01-31T11:00:00.0001Z', '--until', '2021-01-31T12:00:00.0001Z'], [2]],
  ])('prints the rows that %j selects', async (args, places) => {
    expect(await printed(...args)).toEqual(places);
  });

  it('refuses an unknown tenant, bad times and a missing tenant', async () => {
    const unknown = await operator.run(`logs --tenant ${NOBODY}`);
    expect(unknown).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('There is no tenant'),
    });
    expect(unknown.stderr).toContain('tenant_not_found');
    expect(await operator.run(`logs --tenant ${tenant} --since yesterday`)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining("'yesterday'"),
    });
    expect(await operator.run('logs')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("'--tenant <uuid>' not specified"),
    });
  });

  it('prints the log of a deleted tenant, whose audit trail is kept', async () => {
    const { tenant_id: gone } = (await operator.json('tenant create --name Gone')) as { tenant_id: string };
    expect((await operator.run(`tenant delete --yes ${gone}`)).code).toBe(0);
    const { stdout } = await operator.run(`logs --tenant ${gone} --json`);
    expect(rowsIn(stdout).map((row) => row.message)).toEqual(['Tenant created', 'Tenant deleted']);
  });

  /** A tenant with more rows than fit into a pipe. */
  const longTenant = async (): Promise<string> => {
    const { tenant_id: long } = (await operator.json('tenant create --name Long')) as { tenant_id: string };
    await reportFacts(
      folder,
      long,
      Array.from({ length: 5_000 }, (_, i) => fact('TokenRead', `a rather long name of a token ${i}`)),
    );
    return long;
  };

  it('fails if it is interrupted before its end', async () => {
    const child = spawnProgram(['logs', '--tenant', await longTenant()], { DATA_DIR: folder });
    let stderr = '';
    child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    await once(child.stdout!, 'readable');
    child.kill('SIGTERM');
    child.stdout?.resume();
    const [code, signal] = await once(child, 'close');
    expect([code, signal, stderr]).toEqual([1, null, 'Interrupted: not all rows were printed.\n']);
  });

  it('ends quietly when its reader stops, as in | head -1', async () => {
    const long = await longTenant();
    for (const follow of [[], ['--follow']]) {
      const child = spawnProgram(['logs', '--tenant', long, ...follow], { DATA_DIR: folder });
      let stderr = '';
      child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
      const [chunk] = (await once(child.stdout!, 'data')) as [Buffer];
      child.stdout?.destroy();
      const [code, signal] = await once(child, 'close');
      expect({ follow, code, signal, stderr }).toEqual({ follow, code: 0, signal: null, stderr: '' });
      expect(chunk.toString()).toMatch(/^\S+ {2}tenant\/\S+ {2}create {2}Tenant created /);
    }
  });
});

describe('tenant-ledger logs --follow beside a server', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ DEMO: 'false' });
  });

  it('prints each new row once, in order, filtered, and exits with 0 on SIGINT', async () => {
    const { folder } = service;
    const { tenant_id: tenant } = (await operatorAt(folder).json('tenant create --name A')) as {
      tenant_id: string;
    };
    const all = following(folder, '--tenant', tenant, '--json');
    const tokens = following(folder, '--tenant', tenant, '--entity-type', 'token', '--json');
    const started = () => [all, tokens].every(({ stdout }) => stdout().includes(first[0]!));
    const first = await reportFacts(folder, tenant, [fact('TokenRead', 'first')]);
    await until(started, 20_000, 'the first row');
    const more: string[] = [...first];
    const expected: string[] = [...first];
    for (let round = 0; round < 8; round += 1) {
      const facts = Array.from({ length: 100 }, (_, i) => fact(i % 2 === 0 ? 'TokenRead' : 'CardRead', 'x'));
      const ids = await reportFacts(folder, tenant, facts);
      more.push(...ids);
      expected.push(...ids.filter((_, i) => i % 2 === 0));
    }
    await until(
      () => all.stdout().includes(more.at(-1)!) && tokens.stdout().includes(expected.at(-1)!),
      20_000,
      'the last row',
    );
    for (const { signal, done, stderr } of [all, tokens]) {
      signal('SIGINT');
      expect([await done, stderr()]).toEqual([0, '']);
    }
    const idsOf = (text: string) => rowsIn(text).map((row) => row.id);
    expect(idsOf(all.stdout()).slice(1)).toEqual(more);
    expect(idsOf(tokens.stdout())).toEqual(expected);
  });

  it.each([
    ['beside a server', true],
    ['alone', false],
  ])(
    'continues while the read model is rebuilt and old generations are pruned: %s',
    async (_, withServer) => {
      const folder = withServer ? service.folder : freshFolder();
      const operator = operatorAt(folder);
      const { tenant_id: tenant = '' } = await operator.json('tenant create --name A');
      const { signal, done, stdout, stderr } = following(folder, '--tenant', tenant, '--json');
      const ids: string[] = [];
      const report = async (what: string): Promise<void> => {
        ids.push(...(await reportFacts(folder, tenant, [fact('TokenRead', 'x'), fact('CardRead', 'y')])));
        await until(() => stdout().includes(ids.at(-1) ?? ''), 20_000, what);
      };
      await report('the first rows');
      expect(await operator.json('projections rebuild logs')).toMatchObject([{ differences: 0 }]);
      await report('the rows after the rebuild');
      expect(await operator.json('projections prune --yes')).toHaveLength(1);
      await report('the rows after pruning');
      signal(withServer ? 'SIGINT' : 'SIGTERM');
      expect([await done, stderr()]).toEqual([0, '']);
      expect(
        rowsIn(stdout())
          .map((row) => row.id)
          .slice(1),
      ).toEqual(ids);
    },
    60_000,
  );
});
