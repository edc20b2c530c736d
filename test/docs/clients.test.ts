import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freshFolder } from '../support/folders';
import { freePort } from '../support/free-port';
import { ask, rename } from '../support/http';
import { reportFacts } from '../support/reported-facts';
import { outputsOf, startService, type Service } from '../support/service';
import { until } from '../support/waiting';
import { blocks, ROOT, textOf } from './pages';

const [usage = '', ...libraries] = blocks('docs/clients.md', 'js');
const sample = textOf('docs/samples/client.mjs');

/** Runs lines after the sample. Prints are collected. */
const started = (lines: string, { url, key }: Pick<Service, 'url' | 'key'>) => {
  const file = join(freshFolder(), 'client.mjs');
  writeFileSync(file, `${sample}\n${lines}\n`);
  const child = spawn(process.execPath, [file], { env: { ...process.env, URL: url, KEY: key } });
  const { stdout, stderr } = outputsOf(child);
  const ended = once(child, 'close').then(([code]) => {
    if (code === 1) throw new Error(stderr());
    return stdout().trim().split('\n');
  });
  return {
    ended,
    printed: () =>
      stdout()
        .split('\n')
        .filter((line) => line !== ''),
    stop: () => child.kill(),
  };
};

/** A server that answers as the test says. */
const serving = async (answer: RequestListener) => {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() };
};

describe('docs/clients.md', () => {
  it('has a client that repeats what is worth repeating, with one idempotency key', async () => {
    const keys: unknown[] = [];
    const { url, close } = await serving((request, response) => {
      keys.push(request.headers['svc-idempotency-key']);
      if (keys.length === 1) return void request.socket.destroy();
      if (keys.length === 2) return void response.writeHead(503, { 'Retry-After': '1' }).end();
      response.writeHead(keys.length === 3 ? 200 : 503).end('{}');
    });
    const lines = `for (const method of ['PUT', 'GET']) console.log((await call(method, '/')).status);`;
    expect(await started(lines, { url, key: 'key' }).ended).toEqual(['200', '503']);
    close();
    expect(keys.slice(0, 3)).toEqual(Array.from({ length: 3 }, () => keys[0]));
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
    expect(keys.slice(3)).toEqual([undefined]);
  });

  it('has a client that changes what it has read, gets every page, and resumes streams', async () => {
    const port = await freePort();
    const folder = freshFolder();
    const service = await startService({ PORT: port, DATA_DIR: folder });
    const { url, key } = service;
    const changes = `const add = () => changeTenant(({ name }) => ({ name: name + '+' }));
      console.log((await Promise.all([add(), add(), add(), add()])).map(({ status }) => status).join());
      const ids = [];
      for await (const { id } of allLogs({ size: 3 })) ids.push(id);
      console.log(ids.length, new Set(ids).size);`;
    const rows = (await ask(`${url}/logs?size=1`, { key })).json.pagination.total_items as number;
    const [statuses, counts] = await started(changes, { url, key }).ended;
    expect(statuses).toBe('200,200,200,200');
    expect((await ask(`${url}/tenants/self`, { key })).json.name).toBe('Demo tenant++++');
    expect(counts).toBe(`${rows + 4} ${rows + 4}`);

    const following = started(
      `for await (const { id, data } of followEvents()) console.log(id, data.name);`,
      { url, key },
    );
    const seen = (name: string) =>
      until(() => following.printed().some((line) => line.endsWith(name)), 30_000);
    await rename(service, key, 'Before');
    await seen('Before');
    expect(await service.stop()).toBe(0);
    await startService({ PORT: port, DATA_DIR: folder });
    await rename(service, key, 'After');
    await seen('After');
    following.stop();
    await following.ended;
    const ids = following.printed().map((line) => line.split(' ')[0]);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.length).toBeGreaterThanOrEqual(rows + 6);
  });

  it('shows how it is used', async () => {
    const service = await startService();
    const printed = await started(usage.replace(/^import .*$/m, ''), service).ended;
    expect(printed.slice(0, 2)).toEqual(['200', 'Tenant updated Management']);
  });

  it('has a client that changes nothing while its Tenant is parked', async () => {
    const service = await startService();
    const { id } = (await ask(`${service.url}/tenants/self`, { key: service.key })).json;
    await reportFacts(service.folder, id, [{ type: 'TokenExploded', data: { entityId: 'a' } }]);
    const read = () => ask(`${service.url}/tenants/self`, { key: service.key });
    await until(async () => (await read()).headers.get('etag') === null);
    const change = `await changeTenant(() => ({ name: 'Blind' })).catch(({ message }) => console.log(message));`;
    expect(await started(change, service).ended).toEqual(['What the Tenant is now cannot be read: 200']);
    expect((await read()).json.name).toBe('Demo tenant');
  });

  it('has a stream that waits as long as it is told before it connects again', async () => {
    const arrivals: number[] = [];
    const { url, close } = await serving((_, response) => {
      arrivals.push(Date.now());
      if (arrivals.length === 1) return void response.writeHead(429, { 'Retry-After': '3' }).end();
      response.end('{"id":"a","position":"1","data":{}}\n');
    });
    const following = started(`for await (const { id } of followEvents()) console.log(id);`, {
      url,
      key: 'x',
    });
    await until(() => following.printed().length > 0, 30_000);
    following.stop();
    await following.ended;
    close();
    expect((arrivals[1] ?? 0) - (arrivals[0] ?? 0)).toBeGreaterThanOrEqual(2_900);
  });

  it('shows how libraries of others are used', async () => {
    const service = await startService({ HEADER_PREFIX: 'BT', HOST: 'localhost' });
    const uses = libraries.map((text) =>
      text.replace(/http:\/\/[a-z0-9.]+:8080/, service.url.replace(/\/\/[^:]+/, '//localhost')),
    );
    expect(uses.length).toBe(2);
    for (const use of uses) {
      const program = `const KEY = '${service.key}';\n${use}console.log(tenant.name);`;
      const args = ['--input-type=module', '--eval', program];
      const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT });
      expect(stdout).toBe('Demo tenant\n');
    }
  });

  it('names the headers as they are', () => {
    const names = new Set(`${textOf('docs/clients.md')}${sample}`.match(/SVC-[A-Z-]+/g));
    expect([...names].toSorted()).toEqual([
      'SVC-API-KEY',
      'SVC-COMPLETE-UNTIL',
      'SVC-IDEMPOTENCY-KEY',
      'SVC-IDEMPOTENT-REPLAYED',
      'SVC-READ-PENDING',
    ]);
  });
});
