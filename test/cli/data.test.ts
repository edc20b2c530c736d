import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { projections } from '../../projections/projections';
import { projectingLease } from '../../src/projecting/lease';
import { sqliteReadModels } from '../../src/read-models/sqlite/sqlite-read-models';
import { freshFolder } from '../support/folders';
import { filesWith } from '../support/found-text';
import { ask } from '../support/http';
import { eventsIn, operatorAt } from '../support/operator';
import { startService } from '../support/service';

const MAIN = join(__dirname, '..', '..', 'src', 'cli', 'main.js');

describe('a command that writes', () => {
  it('names who did it: --actor, else OPERATOR_ID, and the user of the machine', async () => {
    const [actor, operatorId] = [randomUUID(), randomUUID()];
    const folder = freshFolder();
    await operatorAt(folder).json(`tenant create --name A --actor ${actor}`);
    const asOperator = operatorAt(folder, { OPERATOR_ID: operatorId });
    const made = await asOperator.json('tenant create --name B');
    expect(made['owner_id']).toBe(operatorId);
    const ids = (await eventsIn(folder)).map(({ metadata }) => metadata);
    expect(ids).toMatchObject([
      { actor: { type: 'user', id: actor, osUser: userInfo().username } },
      { actor: { type: 'user', id: operatorId, osUser: userInfo().username } },
    ]);
  });

  it('projects by itself when no server runs, also what others left behind', async () => {
    const operator = operatorAt(freshFolder());
    const made = [];
    for (const name of ['A', 'B', 'C']) made.push(await operator.json(`tenant create --name ${name}`));
    const readModels = await sqliteReadModels(join(operator.folder, 'read-models'));
    try {
      const tenants = await readModels.open(
        { projection: 'tenants', version: 2, generation: 1 },
        [{ name: 'tenants', indexes: {} }],
        'unused',
      );
      const found = (await tenants.scan('tenants', 10)).map(({ tenantId }) => tenantId);
      expect(found).toEqual(made.map((tenant) => String(tenant['tenant_id'])).toSorted());
    } finally {
      await readModels.close();
    }
  });

  it('waits at most 2 s for another process that projects, and has written all the same', async () => {
    const leases = projections.map(({ name, version }) => projectingLease(name, version));
    const operator = operatorAt(freshFolder());
    const { tenant_id: id } = await operator.json('tenant create --name A');
    const readModels = await sqliteReadModels(join(operator.folder, 'read-models'));
    try {
      for (const lease of leases)
        expect(await readModels.lease(lease, `${hostname()} test ${process.pid}`, 60_000)).toBe(true);
      const begun = performance.now();
      const changed = await operator.run(`tenant set-plan ${id} --included-tokens 9 --json`);
      const took = performance.now() - begun;
      expect(changed).toMatchObject({ code: 0, stderr: expect.stringContaining('do not show it yet') });
      expect(JSON.parse(changed.stdout)).toMatchObject({ included_monthly_active_tokens: 9 });
      expect(took).toBeGreaterThan(1_900);
      expect(took).toBeLessThan(8_000);
      const unseen = await operator.run(`application create --tenant ${id} --name A --type public --json`);
      const { application_id: app } = JSON.parse(unseen.stdout) as { application_id: string };
      const renamed = await operator.run(`application rename --tenant ${id} ${app} --name B --json`);
      expect(renamed.code).toBe(0);
      expect(JSON.parse(renamed.stdout)).toMatchObject({ name: 'B', created_at: null });
    } finally {
      for (const lease of leases) await readModels.release(lease, `${hostname()} test ${process.pid}`);
      await readModels.close();
    }
    expect(await operator.json(`tenant show ${id}`)).toMatchObject({ included_monthly_active_tokens: 9 });
  });

  it('makes keys that work over HTTP at once and are found in no file', async () => {
    const service = await startService();
    const operator = operatorAt(service.folder);
    const { tenant_id: tenant } = await operator.json('tenant create --name Fresh');
    const created = await operator.json(
      `application create --tenant ${tenant} --name M --type management --permission tenant:read --permission tenant:update`,
    );
    const read = await ask(`${service.url}/tenants/self`, { key: created['key'] ?? '' });
    expect(read).toMatchObject({ status: 200, json: { id: tenant, name: 'Fresh' } });
    const line = `key create --tenant ${tenant} --application ${created['application_id']}`;
    const second = await operator.json(line);
    const written = await ask(`${service.url}/tenants/self`, {
      method: 'PUT',
      key: second['key'] ?? '',
      body: { name: 'Fresher' },
    });
    expect(written.status).toBe(200);

    const digests = (await eventsIn(service.folder)).filter(({ type }) => type === 'KeyAdded');
    const keys = [service.key, created['key'] ?? '', second['key'] ?? ''];
    expect(digests).toHaveLength(keys.length);
    expect(filesWith('KeyAdded', service.folder)).not.toEqual([]);
    for (const key of keys) expect(filesWith(key.slice(4), service.folder)).toEqual([]);
    expect(await service.stop()).toBe(0);
    for (const key of keys) expect(filesWith(key.slice(4), service.folder)).toEqual([]);
    for (const key of keys) expect(service.stderr()).not.toContain(key.slice(4));
  });

  it('can be run many times at once on a new folder', async () => {
    const operator = operatorAt(join(freshFolder(), 'a', 'b'));
    const made = await Promise.all(
      ['A', 'B', 'C', 'D', 'E'].map((name) => operator.json(`tenant create --name ${name}`)),
    );
    const listed = await operator.json<{ tenant_id: string }[]>('tenant list');
    expect(listed.map((one) => one.tenant_id)).toEqual(
      made.map((one) => String(one['tenant_id'])).toSorted(),
    );
  });
});

describe('a command that reads, on a folder that is not there yet', () => {
  const operator = operatorAt(join(freshFolder(), 'not', 'there'));

  it('finds nothing and says how to begin', async () => {
    expect(await operator.run('tenant list')).toEqual({
      code: 0,
      stdout: '',
      stderr: 'There are no tenants. Make one with: tenant-ledger tenant create --name NAME\n',
    });
    expect(await operator.json<unknown>('tenant list')).toEqual([]);
    const status = await operator.json<unknown>('status');
    expect(status).toMatchObject({ log: { head: null }, projector: null });
    const key = await operator.run(`key list --tenant ${randomUUID()}`);
    expect(key).toMatchObject({ code: 1, stdout: '' });
  });

  it('does not make it when no data is needed', async () => {
    const other = operatorAt(join(freshFolder(), 'none'));
    for (const line of ['permissions', 'config', 'explain key_refused', '--help', 'tenant show nonsense'])
      await other.run(line);
    expect(existsSync(other.folder)).toBe(false);
  });
});

describe('a reader that stops reading', () => {
  it('is no failure', async () => {
    const child = spawn(process.execPath, [MAIN, 'permissions'], { stdio: ['ignore', 'pipe', 'pipe'] });
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    child.stdout.destroy();
    const [code] = (await once(child, 'close')) as [number | null];
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });
});
