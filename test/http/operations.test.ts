import { join } from 'node:path';
import { securityHeaders } from '../../src/http/middleware';
import { ask, rename } from '../support/http';
import { converse } from '../support/raw';
import { serviceForTests, startService } from '../support/service';
import { succeeds, until } from '../support/waiting';

describe('the operations listener', () => {
  const service = serviceForTests();

  it('answers /livez', async () => {
    const { status, json, headers } = await ask(`${service.operationsUrl}/livez`);
    expect([status, json]).toEqual([200, { status: 'live' }]);
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it.each(['/livez', '/readyz', '/metrics', '/nowhere'])(
    'sends the security headers with %s',
    async (path) => {
      const { headers } = await ask(`${service.operationsUrl}${path}`);
      expect(Object.keys(securityHeaders).map((name) => [name, headers.get(name)])).toEqual(
        Object.entries(securityHeaders),
      );
    },
  );

  it('answers /readyz with the progress of every part', async () => {
    await rename(service, service.key, 'B');
    const { status, json } = await ask(`${service.operationsUrl}/readyz?verbose`);
    expect(status).toBe(200);
    expect(json).toEqual({
      status: 'ready',
      log: {
        store: join(service.folder, 'events.db'),
        identity: expect.stringMatching(/^[0-9a-f-]{36}$/),
        head: expect.stringMatching(/^\d{16}$/),
      },
      read_models: {
        set: expect.stringMatching(/^[0-9a-f]{16}$/),
        position: json.log.head,
        lag_events: 0,
        lag_seconds: 0,
        parked: [],
        building: null,
      },
      unreadable: [],
      limits: { shared: false, blocks_started: 0, counted_alone: 0 },
    });
  });

  it('serves nothing else, and no part of the API', async () => {
    for (const path of ['/', '/permissions', '/tenants/self', '/livez/', '/problems/not_found']) {
      const { status, json } = await ask(`${service.operationsUrl}${path}`, { key: service.key });
      expect([status, json]).toEqual([404, { paths: ['/livez', '/readyz', '/metrics'] }]);
    }
    for (const method of ['POST', 'PUT', 'DELETE'])
      expect((await ask(`${service.operationsUrl}/livez`, { method })).status).toBe(405);
  });

  it('answers HEAD without a body', async () => {
    for (const path of ['/livez', '/readyz']) {
      const { status, text } = await ask(`${service.operationsUrl}${path}`, { method: 'HEAD' });
      expect([status, text]).toEqual([200, '']);
    }
  });

  it('is not reachable through the API', async () => {
    for (const path of ['/livez', '/readyz'])
      expect((await ask(`${service.url}${path}`, { key: service.key })).status).toBe(404);
  });

  it('answers /readyz with 503 from the beginning of a shutdown to its end', async () => {
    const { key, operationsUrl, stop, url } = await startService();
    const { socket, received, closed } = converse(url);
    const head = `Host: x\r\nSVC-API-KEY: ${key}\r\nContent-Type: application/json\r\nContent-Length: 12\r\n`;
    socket.write(`PUT /tenants/self HTTP/1.1\r\n${head}\r\n{"name":`);
    expect((await ask(`${url}/permissions`, { key })).status).toBe(200);
    expect((await ask(`${operationsUrl}/readyz`)).status).toBe(200);
    const stopped = stop();
    expect(await ask(`${operationsUrl}/readyz`)).toMatchObject({ status: 503, json: { status: 'stopping' } });
    await until(async () => !(await succeeds(ask(url))));
    expect((await ask(`${operationsUrl}/readyz`)).status).toBe(503);
    expect((await ask(`${operationsUrl}/livez`)).status).toBe(200);
    socket.write('"B"}');
    await closed;
    expect(received()).toMatch(/^HTTP\/1\.1 200 /);
    expect(await stopped).toBe(0);
  });
});
