import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RawEvent } from '../../src/audit/event-views';
import type { NewEvent } from '../../src/event-log/event-log';
import { makeKey } from '../../src/ledger/api-key';
import { fillBusyLog } from '../support/busy-log';
import { anEvent } from '../support/events';
import { freshFolder } from '../support/folders';
import { eventsIn as storedIn, operatorAt } from '../support/operator';
import { openLogIn } from '../support/profile';
import { outputsOf, spawnProgram } from '../support/service';

const NOBODY = '7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11';

const linesOf = (text: string): readonly string[] => text.split('\n').slice(0, -1);
const eventsIn = (stdout: string): readonly RawEvent[] =>
  linesOf(stdout)
    .slice(0, -1)
    .map((line) => JSON.parse(line) as RawEvent);
const trailerIn = (stdout: string): unknown => JSON.parse(linesOf(stdout).at(-1) ?? '');

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

  it('prints every event as stored, with digests of digests of keys, and a trailer', async () => {
    const { code, stdout, stderr } = await OPERATOR.run('audit');
    expect([code, stderr]).toEqual([0, '']);
    const events = eventsIn(stdout);
    const { digest } = (await storedIn(OPERATOR.folder))[3]!.data as { readonly digest: string };
    const digestOfDigest = createHash('sha256').update(digest).digest('hex');
    expect(events.map(({ type }) => type)).toEqual([
      'TenantCreated',
      'TenantCreated',
      'ApplicationCreated',
      'KeyAdded',
      'ApplicationUpdated',
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
      data: { keyId: key, applicationId: application, digest_sha256: digestOfDigest },
      metadata: expect.objectContaining({ version: 1 }),
    });
    expect(trailerIn(stdout)).toEqual({
      trailer: {
        log: expect.any(String),
        view: 'operator',
        filter: {},
        up_to: events.at(-1)?.position,
        events: 6,
        sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    });
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
    expect(stdout).toContain('ApplicationUpdated');
    expect(stdout).toContain('name: "App" → "Renamed"');
    const limited = await OPERATOR.run(`audit --type KeyAdded --type KeyRevoked --key ${key} --limit 1`);
    expect(eventsIn(limited.stdout).map(({ type }) => type)).toEqual(['KeyAdded']);
    const rest = await OPERATOR.run(`audit --key ${key} --after ${eventsIn(limited.stdout)[0]?.position}`);
    expect(eventsIn(rest.stdout).map(({ type }) => type)).toEqual(['KeyRevoked']);
  });

  it('is confirmed by audit check, which names the first line that differs', async () => {
    const file = join(freshFolder(), 'export.ndjson');
    const { stdout } = await OPERATOR.run('audit');
    writeFileSync(file, stdout);
    const checked = await OPERATOR.run('audit check', file);
    expect(checked).toMatchObject({ code: 0, stderr: '' });
    expect(checked.stdout).toContain('is unaltered: 6 events with {"filter":{},"up_to":"');
    writeFileSync(file, stdout.replace('Renamed', 'Altered'));
    const altered = await OPERATOR.run('audit check', file);
    const line = linesOf(stdout).findIndex((text) => text.includes('Renamed'));
    const { id } = eventsIn(stdout)[line] ?? {};
    expect([altered.code, altered.stderr]).toEqual([
      1,
      `${file} differs from the log in line ${line + 1}: the log has event ${id} there.\n`,
    ]);
    const json = await OPERATOR.run('audit check', file, '--json');
    expect([json.code, JSON.parse(json.stdout)]).toMatchObject([
      1,
      { unaltered: false, difference: { line: line + 1 }, trailer: { events: 6 } },
    ]);
  });

  it('prints one event with what it changed', async () => {
    const { stdout } = await OPERATOR.run('audit --type ApplicationUpdated');
    const [{ id } = { id: '' }] = eventsIn(stdout);
    const shown = await OPERATOR.run(`audit --event ${id}`);
    expect(eventsIn(shown.stdout)).toMatchObject([
      { id, metadata: { changes: [{ field: 'name', from: 'App', to: 'Renamed' }] } },
    ]);
    const readable = await OPERATOR.run(`audit --event ${id} --tenant ${tenant} --format pretty`);
    expect(readable).toMatchObject({ code: 0, stderr: '1 event\n' });
    expect(readable.stdout).toContain('name: "App" → "Renamed"');
    const absent = await OPERATOR.run(`audit --event ${NOBODY} --format pretty`);
    expect(absent).toMatchObject({ code: 1, stdout: '' });
    expect(absent.stderr).toContain(`No event ${NOBODY} meets the conditions. [event_not_found]`);
  });

  it('refuses a position that the log has not reached', async () => {
    const { stdout } = await OPERATOR.run('audit --limit 1');
    const [{ position } = { position: '' }] = eventsIn(stdout);
    const refused = await OPERATOR.run(`audit --after ${'9'.repeat(position.length)}`);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(
      /is not a position of this log yet: it ends at [0-9]+\. \[wrong_usage\]$/m,
    );
  });

  it.each<[string, number, string]>([
    ['audit --entity nothing', 2, 'It must be a type and an id'],
    ['audit --after 12', 2, 'It must be a position'],
    // The event log has positions of 16 digits, or of 20 in an event store.
    [`audit --after ${'9'.repeat(18)}`, 2, 'is not a position of this log'],
    ['audit --since 2024-02-01 --until 2024-01-01', 2, '--since must not be after --until'],
    ['audit --after 0000000000000001 --since 2024-01-01', 2, 'cannot be used with option'],
    ['audit --limit 0', 2, 'It must be a whole number, 1 or more'],
    ['audit check no-such-file', 1, '[file_unreadable]'],
    [`audit --tenant ${NOBODY}`, 4, `There is no tenant ${NOBODY}. [tenant_not_found]`],
    [`audit --follow --tenant ${NOBODY}`, 4, `There is no tenant ${NOBODY}. [tenant_not_found]`],
    ['audit --client 192.0.2', 2, 'It must be an IP address'],
  ])('refuses %s', async (line, code, text) => {
    const finished = await OPERATOR.run(line);
    expect({ code: finished.code, stdout: finished.stdout }).toEqual({ code, stdout: '' });
    expect(finished.stderr).toContain(text);
  });
});

describe('what tenant-ledger audit finds', () => {
  const operator = operatorAt(freshFolder());
  const keyId = randomUUID();
  const types = async (line: string) => eventsIn((await operator.run(line)).stdout).map(({ type }) => type);

  beforeAll(async () => {
    const { tenant_id = '' } = await operator.json('tenant create --name Acme');
    const { log, streams } = await openLogIn(operator.folder);
    const fact = (type: string, metadata: NewEvent['metadata']) =>
      anEvent({ entityId: 'tok_1' }, { type, metadata });
    const moments = { firstAt: '2026-01-31T00:00:00Z', lastAt: '2026-01-31T00:00:00Z' };
    const facts = [
      fact('TokenCreated', { keyId, client: { address: '192.0.2.1' } }),
      fact('TokenUsed', { keyId: keyId.toUpperCase(), client: { address: '2001:db8:0:1::/64' } }),
      fact('TokenRead', {
        clients: [
          { address: '192.0.2.1', requests: 1, ...moments },
          { requests: 1, ...moments },
        ],
      }),
      fact('TokenDeleted', { keyId: NOBODY, client: { address: '192.0.2.11' } }),
    ];
    await log.append(streams.activity(tenant_id), facts, 'no_stream');
    await log.close();
  });

  it('of a key: facts that name it, however it is spelt', async () => {
    expect(await types(`audit --key ${keyId}`)).toEqual(['TokenCreated', 'TokenUsed']);
    expect(await types(`audit --key ${keyId.toUpperCase()}`)).toEqual(['TokenCreated', 'TokenUsed']);
  });

  it.each(['192.0.2.1', '::ffff:192.0.2.1', '::FFFF:C000:201', '0:0:0:0:0:ffff:192.0.2.1%eth0'])(
    'of the address %s: events of its requests and sums, and no other address that begins with it',
    async (address) => {
      expect(await types(`audit --client ${address}`)).toEqual(['TokenCreated', 'TokenRead']);
    },
  );

  it('of an IPv6 address: what came from its network; and it is checked like every export', async () => {
    const { stdout, stderr } = await operator.run('audit --client 2001:DB8::1:0:0:0:1');
    expect(eventsIn(stdout).map(({ type }) => type)).toEqual(['TokenUsed']);
    expect(stderr).toContain('Reads are in KeyUsed');
    const file = join(freshFolder(), 'export.ndjson');
    writeFileSync(file, stdout);
    expect((await operator.run('audit check', file)).code).toBe(0);
  });
});

describe('the trailer of tenant-ledger audit', () => {
  const operator = operatorAt(freshFolder());
  const id = 'aB3'.repeat(20);
  beforeAll(async () => {
    const { tenant_id } = await operator.json('tenant create --name Acme');
    const { log, streams } = await openLogIn(operator.folder);
    const events = [id, 'other'].map((text) =>
      anEvent({ entityId: text }, { type: 'TokenRead', metadata: { traceId: text } }),
    );
    await log.append(streams.activity(tenant_id ?? ''), events, 'no_stream');
    await log.close();
  });

  it.each([`--trace ${id}`, `--entity token:${id}`])('names its condition exactly: %s', async (condition) => {
    const { stdout } = await operator.run(`audit ${condition}`);
    expect(eventsIn(stdout)).toHaveLength(1);
    expect(linesOf(stdout).at(-1)).toContain(`"${id}"`);
    const file = join(freshFolder(), 'export.ndjson');
    writeFileSync(file, stdout);
    const checked = await operator.run('audit check', file);
    expect(checked).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('is unaltered') });
  });

  it('contains no API key', async () => {
    const key = makeKey(randomUUID());
    const { code, stdout, stderr } = await operator.run(`audit --trace ${key}`);
    expect([code, stderr]).toEqual([0, '']);
    expect(JSON.parse(stdout)).toMatchObject({ trailer: { events: 0, filter: { trace: 'key_***' } } });
  });
});

describe('tenant-ledger audit of an event that cannot be read', () => {
  it('shows it, and what is wrong with it', async () => {
    const operator = operatorAt(freshFolder());
    const tenant = (await operator.json('tenant create --name Acme'))['tenant_id'] ?? '';
    const { log, streams } = await openLogIn(operator.folder);
    const id = randomUUID();
    await log.append(streams.tenant(tenant), [{ id, type: 'TenantUpdated', data: {}, metadata: {} }], 0);
    await log.close();
    const shown = await operator.run(`audit --event ${id}`);
    expect(eventsIn(shown.stdout)).toMatchObject([{ id, data: {} }]);
    const readable = await operator.run(`audit --event ${id} --format pretty`);
    expect(readable.code).toBe(0);
    expect(readable.stdout).toMatch(/unreadable: The data does not fit .*must have required property 'name'/);
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
    const { stderr } = outputsOf(child);
    child.stdout?.once('data', () => child.stdout?.destroy());
    const [code] = (await once(child, 'close')) as [number];
    expect([code, stderr()]).toEqual([0, '']);
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
});
