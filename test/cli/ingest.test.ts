import { randomUUID } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../src/event-log/streams';
import { ALL_PERMISSIONS, besideForTests } from '../support/beside';
import { fileOf } from '../support/fact-file';
import { aFact, countedUsage, manyFacts, textOf, type Fact } from '../support/facts';
import { freshFolder } from '../support/folders';
import { ask } from '../support/http';
import { eventsIn, operatorAt, type Operator } from '../support/operator';
import { seed, seeded } from '../support/property';
import { readingsOf } from '../support/readings';
import { command, serviceForTests, spawnProgram, type Finished } from '../support/service';
import { until } from '../support/waiting';

interface Done {
  readonly accepted: number;
  readonly already_there: number;
  readonly refused: number;
  readonly errors: readonly { readonly line: number; readonly reason: string }[];
}

const ROOT = join(__dirname, '..', '..', '..');

const fed = (args: readonly string[], folder: string, input: string): Promise<Finished> =>
  command(args, { DATA_DIR: folder }, input);

const factRowIds = (rows: readonly { readonly id: string; readonly entity_type: string }[]) =>
  rows.filter((row) => row.entity_type !== 'tenant').map((row) => row.id);

const idsOf = (facts: readonly Fact[]): readonly string[] => facts.map(({ id }) => id).toSorted();

const storedFacts = async (folder: string): Promise<readonly string[]> =>
  (await eventsIn(folder))
    .filter(({ stream }) => stream.includes('activity-'))
    .map(({ id }) => id)
    .toSorted();

describe('ingest without a server', () => {
  let folder = '';
  let operator: Operator;
  let tenants: readonly string[] = [];
  beforeEach(async () => {
    folder = freshFolder();
    operator = operatorAt(folder);
    const { newTenant, close } = await readingsOf(folder);
    tenants = [await newTenant(), await newTenant()];
    await close();
  });

  const mustShow = async (facts: readonly Fact[]): Promise<void> => {
    const shown = await readingsOf(folder);
    for (const tenant of tenants) {
      const own = facts.filter((fact) => fact.tenant_id === tenant);
      expect(factRowIds(await shown.logs(tenant)).toSorted()).toEqual(idsOf(own));
      expect(await shown.usage(tenant)).toEqual(countedUsage(facts, tenant));
    }
    await shown.close();
  };

  it(seeded('can be killed halfway and run again'), async () => {
    const facts = manyFacts(tenants, 3_000, seed);
    const file = fileOf(facts);
    const log = await sqliteEventLog(folder, streamNames());
    const child = spawnProgram(['ingest', '-'], { DATA_DIR: folder });
    child.stdin!.write(textOf(facts.slice(0, 2_000)));
    const ended = new Promise((resolve) => child.once('close', resolve));
    await until(async () => Number((await log.head())?.position) > 1_000, 20_000, 'the first facts');
    child.kill('SIGKILL');
    await ended;
    const taken = Number((await log.head())?.position);
    await log.close();
    expect(taken).toBeLessThan(2_100);
    // On a busy machine it may say first how far the read models are.
    const { stdout } = await operator.run('ingest', file, '--json');
    const done = JSON.parse(stdout) as Done;
    expect(done).toMatchObject({ refused: 0, errors: [] });
    expect(done.accepted + done.already_there).toBe(3_000);
    expect(done.already_there).toBeGreaterThan(900);
    await mustShow(facts);
  });

  it(seeded('can run twice at the same time, and stores each fact once'), async () => {
    const facts = manyFacts(tenants, 2_000, seed);
    const file = fileOf(facts);
    const runs = [operator.json<Done>('ingest', file), operator.json<Done>('ingest', file)];
    await Promise.all(runs);
    expect(await storedFacts(folder)).toEqual(idsOf(facts));
    await mustShow(facts);
    expect(await operator.json('log verify')).toMatchObject({ findings_total: 0 });
  });

  it('refuses bad lines by number with exit code 1, and takes the others', async () => {
    const [tenant] = tenants as [string];
    const unknown = randomUUID();
    const occurredAt = new Date().toISOString();
    const facts = ['a', 'b'].map((entityId) => aFact(tenant, { data: { entityId, occurredAt } }));
    const file = fileOf(['nonsense', facts[0]!, aFact(unknown), 'x'.repeat(300_000), facts[1]!]);
    const long = 'it is longer than 262144 bytes';
    const plain = await operator.run('ingest', file);
    expect(plain.code).toBe(1);
    expect(plain.stdout).toBe('accepted:      2\nalready_there: 0\nrefused:       3\n');
    expect(plain.stderr.trim().split('\n')).toEqual([
      'line 1: it is not JSON',
      `line 3: tenant ${unknown} is unknown`,
      `line 4: ${long}`,
    ]);
    const json = await operator.run('ingest --json', file);
    expect(json.code).toBe(1);
    const { errors, ...counts } = JSON.parse(json.stdout) as Done;
    expect(counts).toEqual({ accepted: 0, already_there: 2, refused: 3 });
    expect(errors).toEqual([
      { line: 1, reason: 'it is not JSON' },
      { line: 3, reason: `tenant ${unknown} is unknown` },
      { line: 4, reason: long },
    ]);
    const many = await fed(['ingest', '--json'], folder, 'x\n'.repeat(1_001));
    expect(JSON.parse(many.stdout)).toMatchObject({ refused: 1_001, errors: { length: 1_000 } });
    expect(many.stderr).toMatch(/^line 1000: .*\n… and 1 more refused lines\.\n$/m);
    await mustShow(facts);
  });

  it.each([[['ingest', '-']], [['ingest']]])('reads stdin: %j', async (args) => {
    const facts = manyFacts(tenants, 10, seed);
    const crlf = textOf(facts).replaceAll('\n', '\r\n').slice(0, -2);
    expect(await fed(args, folder, crlf)).toEqual({
      code: 0,
      stdout: 'accepted:      10\nalready_there: 0\nrefused:       0\n',
      stderr: '',
    });
    await mustShow(facts);
  });

  it('writes nothing with --dry-run', async () => {
    const before = await eventsIn(folder);
    const unknown = randomUUID();
    const file = fileOf([aFact(tenants[0]!), 'x', aFact(unknown)]);
    const { code, stdout } = await operator.run('ingest --dry-run --json', file);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toEqual({
      accepted: 1,
      already_there: 0,
      refused: 2,
      errors: [
        { line: 2, reason: 'it is not JSON' },
        { line: 3, reason: `tenant ${unknown} is unknown` },
      ],
    });
    expect(await eventsIn(folder)).toEqual(before);
  });

  it('states in one sentence what is wrong with a file', async () => {
    const aFolder = freshFolder();
    const missing = join(aFolder, 'missing.ndjson');
    expect(await operator.run('ingest', missing)).toEqual({
      code: 1,
      stdout: 'accepted:      0\nalready_there: 0\nrefused:       0\n',
      stderr: `tenant-ledger: The file ${missing} does not exist. [file_unreadable]\n`,
    });
    expect(await operator.run('ingest --dry-run --json', aFolder)).toEqual({
      code: 1,
      stdout: expect.stringContaining('"accepted": 0'),
      stderr: `{"error":{"code":"file_unreadable","message":"The file ${aFolder} is a folder."}}\n`,
    });
  });

  it('takes the example from the documentation as it is', async () => {
    const page = readFileSync(join(ROOT, 'docs', 'logs-and-usage.md'), 'utf8');
    const creating = /`tenant-ledger (tenant create --name Example --id (\S+))`/.exec(page);
    await operator.json(creating?.[1] ?? '');
    const work = freshFolder();
    mkdirSync(join(work, 'docs'));
    const example = join(work, 'docs', 'facts-example.ndjson');
    copyFileSync(join(ROOT, 'docs', 'facts-example.ndjson'), example);
    const done = { accepted: 6, already_there: 0, refused: 0, errors: [] };
    expect(await operator.json<Done>('ingest', example)).toEqual(done);
    const shown = await readingsOf(folder);
    const rows = await shown.logs(creating?.[2] ?? '');
    expect(rows.map((row) => `${row.entity_type} ${row.entity_id} ${row.operation}: ${row.message}`)).toEqual(
      [
        'webhook wh_1 send: Webhook sent',
        'token tok_1 delete: Token deleted',
        'card card_1 use: Card used',
        'card card_1 create: Card created',
        'token tok_1 read: Token read',
        'token tok_1 create: Token created',
        `tenant ${creating?.[2]} create: Tenant created`,
      ],
    );
    expect((await shown.usage(creating?.[2] ?? '')).token_report.metrics_by_type).toEqual({
      token: { count: 0, last_created_at: '2026-01-05T09:00:00.000Z' },
      card: { count: 1, last_created_at: '2026-01-07T08:00:00.000Z' },
    });
    await shown.close();
  });
});

describe('ingest beside a server', () => {
  const service = serviceForTests({ DEMO: 'false' });

  const by = besideForTests(service);
  const newTenant = () => by.newTenant('Acme', ALL_PERMISSIONS);

  const allRows = async (key: string): Promise<readonly { id: string; entity_type: string }[]> => {
    const rows: { id: string; entity_type: string }[] = [];
    let start = '';
    do {
      const { json } = await ask(`${service.url}/logs?size=100${start}`, { key });
      rows.push(...json.data);
      start = json.pagination.after === undefined ? '' : `&start=${json.pagination.after}`;
      if (start === '') expect(rows).toHaveLength(json.pagination.total_items);
    } while (start !== '');
    return rows.filter(({ entity_type }) => !['application', 'key', 'tenant'].includes(entity_type));
  };

  it(seeded('is shown by the server as soon as it ends, also the second time'), async () => {
    const customers = [await newTenant(), await newTenant()];
    const facts = manyFacts(
      customers.map(({ tenantId }) => tenantId),
      500,
      seed,
    );
    const file = fileOf(facts);
    const operator = operatorAt(service.folder);
    for (const counts of [
      { accepted: 500, already_there: 0 },
      { accepted: 0, already_there: 500 },
    ]) {
      expect(await operator.json<Done>('ingest', file)).toMatchObject({ ...counts, refused: 0 });
      for (const { tenantId, key } of customers) {
        const own = facts.filter((fact) => fact.tenant_id === tenantId);
        expect((await allRows(key)).map(({ id }) => id).toSorted()).toEqual(idsOf(own));
        const { json } = await ask(`${service.url}/tenants/self/reports/usage`, { key });
        expect(json).toEqual(countedUsage(facts, tenantId));
      }
    }
  });
});
