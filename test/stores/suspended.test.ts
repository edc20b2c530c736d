import { once } from 'node:events';
import { join } from 'node:path';
import { openForWriting } from '../../src/sqlite/database';
import { manyFacts, textOf } from '../support/facts';
import { freshFolder } from '../support/folders';
import { ask } from '../support/http';
import { operatorAt } from '../support/operator';
import { seed, seeded } from '../support/property';
import { serviceProcess, spawnProgram, startService } from '../support/service';
import { until } from '../support/waiting';

describe('Ctrl-Z', () => {
  it(seeded('does not suspend a command that writes, which says so and goes on'), async () => {
    const operator = operatorAt(freshFolder());
    const { tenant_id: tenant = '' } = await operator.json('tenant create --name A');
    const facts = manyFacts([tenant], 400, seed);
    const child = spawnProgram(['ingest', '--json', '--wait', '1'], { DATA_DIR: operator.folder });
    let [stdout, stderr] = ['', ''];
    child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    const ended = once(child, 'close');
    child.stdin?.write(textOf(facts.slice(0, 200)));
    await until(async () => (await operator.run(`audit --tenant ${tenant}`)).stdout.split('\n').length > 100);
    child.kill('SIGTSTP');
    await until(() => stderr !== '');
    child.stdin?.end(textOf(facts.slice(200)));
    expect(await ended).toEqual([0, null]);
    expect(JSON.parse(stdout)).toMatchObject({ accepted: 400, refused: 0 });
    expect(stderr).toMatch(/^Not suspended: .* Ctrl-C stops it; running it again continues\.\n$/);
  });

  it('does not suspend a server', async () => {
    const service = await serviceProcess();
    service.process.kill('SIGTSTP');
    await until(() => service.stderr().includes('not suspended'));
    const put = { method: 'PUT', key: service.key, body: { name: 'Written' } };
    expect((await ask(`${service.url}/tenants/self`, put)).status).toBe(200);
    expect(await service.stop()).toBe(0);
  });
});

describe('a process stopped while it holds the write lock of the log', () => {
  it('makes the server report after the next write that it is not ready, and why, until one succeeds', async () => {
    const service = await startService({ EVENTSTORE_URL: '' });
    const ready = () => ask(`${service.operationsUrl}/readyz`);
    expect((await ready()).status).toBe(200);
    const other = openForWriting(join(service.folder, 'events.db'), 'FULL');
    other.exec('BEGIN IMMEDIATE');
    expect((await ready()).status).toBe(200);
    const put = { method: 'PUT', key: service.key, body: { name: 'Not now' } };
    expect((await ask(`${service.url}/tenants/self`, put)).status).toBe(503);
    expect(await ready()).toMatchObject({
      status: 503,
      json: { status: 'unavailable', reason: expect.stringContaining('Writes are failing.') },
    });
    other.exec('ROLLBACK');
    other.close();
    expect((await ready()).status).toBe(503);
    expect((await ask(`${service.url}/tenants/self`, put)).status).toBe(200);
    expect((await ready()).status).toBe(200);
    await service.stop();
  });
});
