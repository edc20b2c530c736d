import { randomUUID } from 'node:crypto';
import { freshFolder } from '../support/folders';
import { operatorAt } from '../support/operator';
import { openAppIn } from '../support/profile';

const APPLICATIONS = 600;
const KEYS = 10_600;

const hex = (n: number): string => n.toString(16).padStart(64, '0');

const UNUSUAL = 'a\u001b[2J\n\u202eb';
const SHOWN = 'a\\u001b[2J\\u000a\\u202eb';

it('escapes control characters in a name instead of printing them, except in JSON', async () => {
  const operator = operatorAt(freshFolder());
  const { tenant_id: tenant } = await operator.json('tenant create --name', UNUSUAL);
  const shown = await operator.run(`tenant show ${tenant}`);
  const listed = await operator.run('tenant list');
  for (const { stdout } of [shown, listed]) {
    expect(stdout).toContain(SHOWN);
    expect(stdout).not.toContain('\u001b');
  }
  const created = await operator.json(`application create --tenant ${tenant} --name A --type public`);
  const named = `--tenant ${tenant} ${created['application_id']}`;
  await operator.json(`application rename ${named} --name`, UNUSUAL);
  const { stdout: changes } = await operator.run('audit --type ApplicationUpdated --format pretty');
  expect(changes).toContain('name: "A" → "a\\u001b[2J\\n\\u202eb"');
  const { stderr } = await operator.run(`application set-permissions ${named} --permission`, UNUSUAL);
  expect(stderr).toContain('\\u202eb');
  expect(await operator.json(`tenant show ${tenant}`)).toMatchObject({ name: UNUSUAL });
});

describe('a list', () => {
  const operator = operatorAt(freshFolder());
  let tenant = '';
  beforeAll(async () => {
    tenant = (await operator.json('tenant create --name A'))['tenant_id'] ?? '';
    await operator.json('tenant create --name', 'Ä'.repeat(200));
    const app = await openAppIn(operator.folder);
    const { log, streams } = app;
    const metadata = { version: 1, at: new Date().toISOString() };
    const applications = Array.from({ length: APPLICATIONS }, () => randomUUID());
    const events = [
      ...applications.map((applicationId, n) => ({
        type: 'ApplicationCreated',
        data: { applicationId, name: `A${n}`, applicationType: 'public', permissions: [] },
      })),
      ...Array.from({ length: KEYS }, (_, n) => ({
        type: 'KeyAdded',
        data: { keyId: randomUUID(), applicationId: applications[n % 2], digest: hex(n) },
      })),
    ].map((event) => ({ ...event, id: randomUUID(), metadata }));
    for (let at = 0; at < events.length; at += 1_000)
      await log.append(streams.tenant(tenant), events.slice(at, at + 1_000), at);
    expect(await app.catchUp((await log.head())?.position ?? '', 30_000)).toBe(true);
    await app.close();
  });

  it('of keys or Applications is complete, however long it is', async () => {
    const keys = await operator.json<{ application_id: string; key_id: string }[]>(
      `key list --tenant ${tenant}`,
    );
    expect(new Set(keys.map((key) => key.key_id)).size).toBe(KEYS);
    const application = keys[0]?.application_id;
    const own = await operator.json<unknown[]>(`key list --tenant ${tenant} --application ${application}`);
    expect(own).toHaveLength(KEYS / 2);
    const applications = await operator.json<unknown[]>(`application list --tenant ${tenant}`);
    expect(applications).toHaveLength(APPLICATIONS);
    expect((await operator.run(`key list --tenant ${tenant}`)).stdout.trim().split('\n')).toHaveLength(
      KEYS + 1,
    );
  });

  it('of tenants fits in 100 columns, whatever their names', async () => {
    const { stdout } = await operator.run('tenant list');
    const lines = stdout.trim().split('\n');
    expect(lines).toHaveLength(3);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(100);
    expect(lines[0]).toMatch(/^tenant_id +name +status +created_at$/);
    const rows = await operator.json<object[]>('tenant list');
    expect(Object.keys(rows[0] ?? {})).toEqual(expect.arrayContaining(['owner_id', 'fingerprint_tokens']));
  });
});
