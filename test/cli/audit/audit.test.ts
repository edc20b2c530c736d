import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { RawEvent } from '../../../src/audit/event-views';
import { makeKey } from '../../../src/ledger/api-key';
import { fillBusyLog } from '../../support/busy-log';
import { freshFolder } from '../../support/folders';
import { openLogIn } from '../../support/log-under-test';
import { operatorAt } from '../../support/operator';
import { spawnProgram, startCommand } from '../../support/service';

const NOBODY = '7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11';

const linesOf = (text: string): readonly string[] => text.split('\n').slice(0, -1);
const eventsIn = (stdout: string): readonly RawEvent[] =>
  linesOf(stdout).map((line) => JSON.parse(line) as RawEvent);

const OPERATOR = operatorAt(freshFolder());

describe('tenant-ledger audit', () => {
  let tenant: string;
  let application: string;
  let key: string;
  beforeAll(async () => {
    tenant = (await OPERATOR.json('tenant create --name Acme'))['tenant_id'] ?? '';
    await OPERATOR.json('tenant create --name Other');
    const create = `application create --tenant ${tenant} --name App --type management --permission tenant:read`;
    const made = await OPERATOR.json(create);
    [application, key] = [made['application_id'] ?? '', made['key_id'] ?? ''];
    await OPERATOR.json(`application rename ${application} --tenant ${tenant} --name Renamed`);
    await OPERATOR.json(`key revoke ${key} --tenant ${tenant}`);
  });

  it('prints every event as stored, with key digests truncated, and the trailer on stderr', async () => {
    const { code, stdout, stderr } = await OPERATOR.run('audit');
    expect(code).toBe(0);
    const events = eventsIn(stdout);
    expect(events.map(({ type }) => type)).toEqual([
      'TenantCreated',
      'TenantCreated',
      'ApplicationCreated',
      'KeyAdded',
      'ApplicationRenamed',
      'KeyRevoked',
    ]);
    expect(events[3]).toEqual({
      id: expect.any(String),
      type: 'KeyAdded',
      version: 1,
      tenant_id: tenant,
      stream: expect.stringMatching(new RegExp(`tenant-${tenant}$`)),
      revision: 2,
      position: expect.stringMatching(/^[0-9]{16,20}$/),
      recorded_at: expect.stringMatching(/Z$/),
      actor: expect.objectContaining({ type: 'user' }),
      data: { keyId: key, applicationId: application, digest: expect.stringMatching(/^[0-9a-f]{8}$/) },
      metadata: expect.objectContaining({ version: 1 }),
    });
    expect(JSON.parse(stderr)).toMatchObject({ trailer: { events: 6, filter: {}, format: 'ndjson' } });
  });

  it.each([
    ['KeyAded', 'did you mean KeyAdded?'],
    ['EventSetAsid', 'did you mean EventSetAside?'],
    ['x', 'there are TenantCreated, TenantUpdated,'],
  ])('refuses the event type %s, which does not exist', async (type, suggestion) => {
    const { code, stdout, stderr } = await OPERATOR.run(`audit --type KeyAdded --type ${type}`);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(`There is no such event type: ${suggestion}`);
  });

  it('filters, limits and prints what updates changed', async () => {
    const { stdout } = await OPERATOR.run(
      `audit --tenant ${tenant} --entity application:${application} --format pretty`,
    );
    expect(linesOf(stdout)).toHaveLength(2);
    expect(stdout).toContain('ApplicationRenamed');
    expect(stdout).toContain('name: "App" → "Renamed"');
    const limited = await OPERATOR.run(`audit --type KeyAdded --type KeyRevoked --key ${key} --limit 1`);
    expect(eventsIn(limited.stdout).map(({ type }) => type)).toEqual(['KeyAdded']);
    const [, last = ''] = /"last_position":"([0-9]+)"/.exec(limited.stderr) ?? [];
    const rest = await OPERATOR.run(`audit --key ${key} --after ${last}`);
    expect(eventsIn(rest.stdout).map(({ type }) => type)).toEqual(['KeyRevoked']);
    const csv = await OPERATOR.run('audit --format csv --limit 1');
    expect(linesOf(csv.stdout)[0]).toMatch(/^id,type,version,tenant_id,/);
  });

  it('writes a file that audit check confirms, or whose alterations it names', async () => {
    const file = join(freshFolder(), 'export.ndjson');
    const { code, stdout, stderr } = await OPERATOR.run('audit --output', file);
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '', stderr: '' });
    expect(readdirSync(join(file, '..'))).toEqual(['export.ndjson']);
    const checked = await OPERATOR.run('audit check', file);
    expect(checked).toMatchObject({ code: 0, stderr: '' });
    expect(checked.stdout).toContain('is unaltered: 6 events, all events from the beginning');
    const again = await OPERATOR.run('audit --output', file);
    expect(again.code).toBe(1);
    expect(again.stderr).toContain('exists already');
    writeFileSync(file, readFileSync(file, 'utf8').replace('Renamed', 'Altered'));
    const altered = await OPERATOR.run('audit check', file);
    expect(altered.code).toBe(1);
    expect(altered.stderr).toMatch(/differs from the log in line 1?[0-9]: event \S+ was altered\.$/m);
    const json = await OPERATOR.run('audit check', file, '--json');
    expect(JSON.parse(json.stdout)).toMatchObject({ unaltered: false, trailer: { events: 6 } });
  });

  it('shows one event with the entity before and after it', async () => {
    const { stdout } = await OPERATOR.run('audit --type ApplicationRenamed');
    const [{ id } = { id: '' }] = eventsIn(stdout);
    const shown = await OPERATOR.json<Record<string, unknown>>(`audit show ${id}`);
    expect(shown).toMatchObject({
      event: { id, type: 'ApplicationRenamed' },
      before: { name: 'App', type: 'management' },
      after: { name: 'Renamed', type: 'management' },
      changes: [{ field: 'name', from: 'App', to: 'Renamed' }],
      trace: [],
    });
    const readable = await OPERATOR.run(`audit show ${id} --tenant ${tenant}`);
    expect(readable.stdout).toMatch(/^\* name +App +Renamed$/m);
    const absent = await OPERATOR.run(`audit show ${NOBODY}`);
    expect(absent).toMatchObject({ code: 1, stdout: '' });
    expect(absent.stderr).toContain(`There is no event ${NOBODY} in the log. [event_not_found]`);
  });

  it('shows a tenant and its access before and after a change', async () => {
    const { stdout } = await OPERATOR.run('audit --type KeyAdded');
    const [{ position } = { position: '' }] = eventsIn(stdout);
    interface History {
      readonly state: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
      readonly history: readonly unknown[];
    }
    const before = await OPERATOR.json<History>(`audit history --tenant ${tenant} --at ${position}`);
    expect(before.state[`application ${application}`]).toMatchObject({ name: 'App' });
    expect(before.history).toHaveLength(3);
    const now = await OPERATOR.json<History>(`audit history --tenant ${tenant}`);
    expect(now.state[`application ${application}`]).toMatchObject({ name: 'Renamed' });
    const changes = await OPERATOR.json<unknown>(
      `audit history --tenant ${tenant} --diff ${position} 9999-01-01`,
    );
    expect(changes).toEqual([
      { entity: `application ${application}`, changes: [{ field: 'name', from: 'App', to: 'Renamed' }] },
      { entity: `key ${key}`, changes: [{ field: 'revoked', from: false, to: true }] },
    ]);
    interface Access {
      readonly applications: readonly { readonly keys: readonly unknown[] }[];
    }
    const could = await OPERATOR.json<Access>(`audit access --tenant ${tenant} --at ${position}`);
    expect(could.applications).toMatchObject([{ permissions: ['tenant:read'], keys: [{ id: key }] }]);
    const can = await OPERATOR.json<Access>(`audit access --tenant ${tenant}`);
    expect(can.applications).toMatchObject([{ permissions: ['tenant:read'], keys: [] }]);
  });

  const refusals: readonly (readonly [string, number, string])[] = [
    ['audit --entity nothing', 2, 'It must be a type and an id'],
    ['audit --after 12', 2, 'It must be a position'],
    // The event log has positions of 16 digits, or of 20 in an event store.
    [`audit --after ${'9'.repeat(18)}`, 1, 'is not a position of this log'],
    ['audit --since 2024-02-01 --until 2024-01-01', 2, '--since must not be after --until'],
    ['audit --after 0000000000000001 --since 2024-01-01', 2, 'cannot be used with option'],
    ['audit --follow --output x', 2, 'cannot be used with option'],
    ['audit --format pretty --output x', 2, 'only those can be checked'],
    ['audit --limit 0', 2, 'It must be 1 or more'],
    [`audit history --tenant ${NOBODY}`, 1, 'There is no tenant'],
    [`audit history --tenant ${NOBODY} --diff 2024-01-01`, 2, '--diff needs two moments'],
    [`audit access --tenant ${NOBODY} --at soon`, 2, 'It must be a time'],
    ['audit check no-such-file', 1, '[file_unreadable]'],
  ];
  it('refuses a position that the log has not reached', async () => {
    const { stderr } = await OPERATOR.run('audit --limit 1');
    const [, last = ''] = /"last_position":"([0-9]+)"/.exec(stderr) ?? [];
    const refused = await OPERATOR.run(`audit --after ${'9'.repeat(last.length)}`);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      /is not a position of this log yet: it ends at [0-9]+\. \[position_unknown\]$/m,
    );
  });

  it.each(refusals)('refuses %s', async (line, code, text) => {
    const finished = await OPERATOR.run(line);
    expect({ code: finished.code, stdout: finished.stdout }).toEqual({ code, stdout: '' });
    expect(finished.stderr).toContain(text);
    expect(existsSync('x')).toBe(false);
  });
});

describe('the trailer of tenant-ledger audit on stderr', () => {
  const operator = operatorAt(freshFolder());
  const id = 'aB3'.repeat(20);
  beforeAll(async () => {
    const { tenant_id } = await operator.json('tenant create --name Acme');
    const { log, streams } = await openLogIn(operator.folder);
    const events = [id, 'other'].map((text) => ({
      id: randomUUID(),
      type: 'TokenRead',
      data: { entityId: text },
      metadata: { version: 1, traceId: text },
    }));
    await log.append(streams.activity(tenant_id ?? ''), events, 'no_stream');
    await log.close();
  });

  it.each([`--trace ${id}`, `--entity token:${id}`])('names its condition exactly: %s', async (condition) => {
    const { stdout, stderr } = await operator.run(`audit ${condition}`);
    expect(eventsIn(stdout)).toHaveLength(1);
    expect(stderr).toContain(`"${id}"`);
    const file = join(freshFolder(), 'export.ndjson');
    writeFileSync(file, stdout + stderr);
    const checked = await operator.run('audit check', file);
    expect(checked).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('is unaltered') });
  });

  it('contains no API key', async () => {
    const key = makeKey(randomUUID());
    const { code, stdout, stderr } = await operator.run(`audit --trace ${key}`);
    expect([code, stdout]).toEqual([0, '']);
    expect(JSON.parse(stderr)).toMatchObject({ trailer: { events: 0, filter: { trace: 'key_***' } } });
  });
});

describe('tenant-ledger audit of an event that is impossible in its place', () => {
  const operator = operatorAt(freshFolder());
  const id = randomUUID();
  let tenant: string;
  beforeAll(async () => {
    tenant = (await operator.json('tenant create --name Acme'))['tenant_id'] ?? '';
    const { log, streams } = await openLogIn(operator.folder);
    const data = { applicationId: NOBODY, name: 'Renamed' };
    const renamed = { id, type: 'ApplicationRenamed', data, metadata: { version: 1 } };
    await log.append(streams.tenant(tenant), [renamed], 0);
    await log.close();
  });

  it('shows it, and what is wrong with it', async () => {
    const shown = await operator.json<Record<string, unknown>>(`audit show ${id}`);
    expect(shown).toMatchObject({
      event: { id },
      unreadable: expect.stringContaining(`Application ${NOBODY} does not exist.`),
    });
    const readable = await operator.run(`audit show ${id}`);
    expect(readable).toMatchObject({ code: 0, stderr: expect.stringContaining('It cannot be read by this') });
    const lines = await operator.run('audit --format pretty');
    expect([lines.code, linesOf(lines.stdout)]).toEqual([0, [expect.anything(), expect.anything()]]);
  });

  it('says that there is no history', async () => {
    const { code, stderr } = await operator.run(`audit history --tenant ${tenant}`);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/does not exist\..*\[tenant_unreadable\]\n$/)]);
  });
});

describe('the output of tenant-ledger audit', () => {
  const folder = freshFolder();
  beforeAll(async () => {
    const ledgerLog = await openLogIn(folder);
    await fillBusyLog(ledgerLog, 5_000);
    await ledgerLog.log.close();
  });

  it('may lose its reader, as with | head: that is neither an error nor a position to resume from', async () => {
    const child = spawnProgram(['audit'], { DATA_DIR: folder });
    let stderr = '';
    child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    child.stdout?.once('data', () => child.stdout?.destroy());
    const [code] = (await once(child, 'close')) as [number];
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });

  it('is incomplete after an interruption: the exit code says so, and where to continue', async () => {
    const child = spawnProgram(['audit'], { DATA_DIR: folder });
    let stderr = '';
    child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    await once(child.stdout!, 'readable');
    child.kill('SIGTERM');
    child.stdout?.resume();
    const [code] = (await once(child, 'close')) as [number];
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^(To continue: --after|Nothing was read)/)]);
  });

  it('in a file is removed after an interruption', async () => {
    const file = join(freshFolder(), 'export.ndjson');
    const { signal, done, stdout, stderr } = startCommand(['audit', '--output', file], { DATA_DIR: folder });
    for (let isHandled = false; !isHandled; await setImmediate())
      try {
        signal('SIGINT');
        isHandled = true;
      } catch {
        // It is still opening the log.
      }
    const ended = [await done, stdout(), stderr()];
    expect(ended).toEqual([1, '', `Interrupted: the file ${file} was not written.\n`]);
    expect(readdirSync(join(file, '..'))).toEqual([]);
  });

  it('that cannot be written is reported in one sentence', async () => {
    const full = openSync('/dev/full', 'w');
    const child = spawnProgram(['audit'], { DATA_DIR: folder }, undefined, full);
    let stderr = '';
    child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number];
    expect(code).toBe(1);
    expect(stderr).toMatch(/^tenant-ledger: The output cannot be written: [^\n]*\. \[output_failed\]\n$/);
  });
});

describe('tenant-ledger audit --operation', () => {
  const operator = operatorAt(freshFolder());
  beforeAll(async () => {
    const { tenant_id } = await operator.json('tenant create --name Acme');
    const data = { entityType: 'Invoice', operation: 'Send', entityId: 'inv_1' };
    const fact = { id: randomUUID(), tenant_id, type: 'ActivityReported', data };
    const file = join(freshFolder(), 'facts.ndjson');
    writeFileSync(file, JSON.stringify(fact));
    expect((await operator.run('ingest', file)).code).toBe(0);
  });

  it.each([
    ['create', ['TenantCreated']],
    ['deny', []],
    ['SEND', ['ActivityReported']],
    ['never', []],
  ])('%s finds what has it', async (operation, types) => {
    const { code, stdout } = await operator.run(`audit --operation ${operation}`);
    expect([code, eventsIn(stdout).map(({ type }) => type)]).toEqual([0, types]);
  });
});
