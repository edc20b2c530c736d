import { freshFolder } from '../support/folders';
import { operatorAt } from '../support/operator';
import { fact, reportFacts } from '../support/reported-facts';

const COLUMNS =
  'tenant_id,name,status,deleted_at,month,monthly_active_tokens,included_monthly_active_tokens\r\n';

describe('the usage of all tenants in a month', () => {
  const operator = operatorAt(freshFolder());
  const month = new Date().toISOString().slice(0, 7);
  let busy = '';
  let gone = '';
  const read = (entityId: string, occurredAt: string) =>
    fact('TokenRead', entityId, { data: { occurredAt } });

  beforeAll(async () => {
    const create = async (...options: readonly string[]) =>
      (await operator.json('tenant create --included-tokens 5 --name', ...options))['tenant_id'] ?? '';
    [busy, gone] = [await create('=Busy, "one"'), await create('Gone')];
    const facts = [read('a', '2026-01-31T23:59:59Z'), read('a', '2026-01-01T00:00:00Z')];
    await reportFacts(operator.folder, busy, [
      ...facts,
      read('b', '2026-01-31T12:00:00Z'),
      fact('TokenRead', 'c'),
    ]);
    await reportFacts(operator.folder, gone, facts);
    await operator.json(`tenant set-plan ${busy} --included-tokens 7`);
    await operator.json(`tenant delete ${gone} --yes`);
  });

  const viewOf = (tenant_id: string, at: string, active: number, included: number) => ({
    tenant_id,
    name: tenant_id === busy ? '=Busy, "one"' : 'Gone',
    status: tenant_id === busy ? 'active' : 'deleted',
    deleted_at: tenant_id === busy ? null : expect.stringContaining(month),
    month: at,
    monthly_active_tokens: active,
    included_monthly_active_tokens: included,
  });
  const inOrder = (rows: readonly { readonly tenant_id: string }[]) =>
    rows.toSorted((a, b) => (a.tenant_id < b.tenant_id ? -1 : 1));

  it('is that of the current month unless another one is given, deleted tenants included', async () => {
    expect(await operator.json('usage')).toEqual(
      inOrder([viewOf(busy, month, 1, 7), viewOf(gone, month, 0, 5)]),
    );
    expect(await operator.json('usage --month 2026-01')).toEqual(
      inOrder([viewOf(busy, '2026-01', 2, 0), viewOf(gone, '2026-01', 1, 0)]),
    );
  });

  it('is a table, or CSV that a spreadsheet can open, with nothing else on stdout', async () => {
    const table = await operator.run('usage --month 2026-01');
    expect(table.stdout).toMatch(/^tenant_id +name +status +active +included\n/);
    expect(table.stdout).toContain('=Busy, "one"  ');
    expect(table.stderr).toContain('2026-01 (UTC)');
    const { stdout, stderr, code } = await operator.run('usage --month 2026-01 --csv');
    expect([code, stderr, stdout.startsWith(COLUMNS)]).toEqual([0, '', true]);
    expect(stdout).toContain(`${busy},"'=Busy, ""one""",active,,2026-01,2,0\r\n`);
    expect(stdout.split('\r\n')).toHaveLength(4);
  });

  it.each(['--month 2026-13', '--month 2026-1', '--month now', '--json --csv'])(
    'refuses %s',
    async (options) => {
      const { code, stdout, stderr } = await operator.run(`usage ${options}`);
      expect([code, stdout]).toEqual([2, '']);
      expect(stderr).not.toBe('');
    },
  );

  it('of a parked tenant is incomplete, which the exit code says, too', async () => {
    await reportFacts(operator.folder, gone, [
      { type: 'SomethingElse', data: {} },
      read('late', '2026-01-02T00:00:00Z'),
    ]);
    const { code, stdout, stderr } = await operator.run('usage --month 2026-01 --json');
    expect([code, JSON.parse(stdout)]).toEqual([
      1,
      inOrder([viewOf(busy, '2026-01', 2, 0), viewOf(gone, '2026-01', 1, 0)]),
    ]);
    expect(stderr).toContain(`tenant ${gone} is incomplete`);
  });
});
