import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { monotonicMs } from '../../src/async/clock';
import { arrivalOf, inSequence } from '../../src/http/request/pipelining';
import { inLaterTurn } from '../../src/async/turns';
import { fileOf } from '../support/fact-file';
import { aFact } from '../support/facts';
import { ask } from '../support/http';
import { command, serviceProcess, type ServiceProcess } from '../support/service';
import { until } from '../support/waiting';

/** Clients that send many requests over one connection without reading a response. */
describe('pipelined requests whose responses nobody reads', () => {
  const ADDRESSES = 4;
  const EACH = 990;
  /** With more, the process would end. */
  const HEAP_MB = 96;
  let service: ServiceProcess;

  const silentClient = async (localAddress: string, bytes: string): Promise<Socket> => {
    const { hostname, port } = new URL(service.url);
    const socket = connect({ port: Number(port), host: hostname, localAddress });
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    socket.pause();
    socket.write(bytes);
    return socket;
  };

  const addresses = Array.from({ length: ADDRESSES }, (_, at) => `127.0.0.${at + 2}`);
  const isServed = async (): Promise<boolean> =>
    (await ask(`${service.url}/logs?size=100`, { key: service.key })).status === 200;

  beforeAll(async () => {
    service = await serviceProcess({
      RATE_LIMITS: '',
      NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}`,
    });
    const { json } = await ask(`${service.url}/tenants/self`, { key: service.key });
    const data = { entityType: 'note', operation: 'write', message: 'x'.repeat(50) };
    const facts = Array.from({ length: 100 }, (_, at) =>
      aFact(String(json.id), { type: 'ActivityReported', data: { ...data, entityId: `note_${at}` } }),
    );
    const { code } = await command(['ingest', fileOf(facts)], { DATA_DIR: service.folder });
    expect(code).toBe(0);
    await until(async () => {
      const page = await ask(`${service.url}/logs?size=100`, { key: service.key });
      return page.json.data.length === 100;
    });
  });
  afterAll(async () => {
    expect(await service.stop()).toBe(0);
  });

  it('cost little memory, and are answered in order once somebody reads', async () => {
    const get = `GET /logs?size=100 HTTP/1.1\r\nHost: x\r\nSVC-API-KEY: ${service.key}\r\n\r\n`;
    const last = `GET /nowhere HTTP/1.1\r\nHost: x\r\nSVC-API-KEY: ${service.key}\r\nConnection: close\r\n\r\n`;
    const bytes = `${get.repeat(EACH - 1)}${last}`;
    const clients = await Promise.all(addresses.map((address) => silentClient(address, bytes)));
    for (let times = 0; times < 20; times += 1) expect(await isServed()).toBe(true);
    const [reading, ...others] = clients as [Socket, ...Socket[]];
    for (const socket of others) socket.destroy();
    const statuses: string[] = [];
    let end = '';
    reading.on('data', (chunk: Buffer) => {
      const text = end + chunk.toString('latin1');
      statuses.push(...(text.match(/HTTP\/1\.1 [0-9]{3} /g) ?? []).map((line) => line.slice(9, 12)));
      end = text.slice(-12).replace(/HTTP\/1\.1 [0-9]{3} /, '');
    });
    reading.resume();
    await once(reading, 'close');
    expect(statuses).toEqual([...Array.from({ length: EACH - 1 }, () => '200'), '404']);
  });

  it('cost little memory if they are short and sent over many connections', async () => {
    const bytes = 'GET / HTTP/1.1\r\n\r\n'.repeat(3_600);
    const clients = await Promise.all(
      Array.from({ length: 100 }, (_, at) => silentClient(addresses[at % ADDRESSES] ?? '', bytes)),
    );
    for (let times = 0; times < 20; times += 1) expect(await isServed()).toBe(true);
    for (const client of clients) client.destroy();
    expect(await isServed()).toBe(true);
  });
});

describe('a request that waits for the thread', () => {
  it('arrived before it waited', async () => {
    const HELD_MS = 100;
    const hold = (): void => {
      const end = performance.now() + HELD_MS;
      while (performance.now() < end);
    };
    let waited = 0;
    const server = createServer();
    const handle = inSequence(server, (request, response) => {
      waited = monotonicMs() - arrivalOf(request);
      response.end();
    });
    server.on('request', (request, response) => {
      inLaterTurn(hold);
      handle(request, response);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    expect((await fetch(`http://127.0.0.1:${port}`)).status).toBe(200);
    server.close();
    server.closeAllConnections();
    expect(waited).toBeGreaterThanOrEqual(HELD_MS - 1);
  });
});

describe('a request of a client that has left before it was accepted', () => {
  const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
  const CLIENTS = 20;
  const server = createServer();
  afterAll(() => {
    server.close();
    server.closeAllConnections();
  });

  it('is not handled', async () => {
    let handled = 0;
    server.on(
      'request',
      inSequence(server, (_, response) => {
        handled += 1;
        response.end();
      }),
    );
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    // In a process of its own: this one, which has to accept them, is kept busy until they have left.
    const script = `const { connect } = require('node:net');
      for (let i = 0; i < ${CLIENTS}; i += 1)
        connect(${port}, '127.0.0.1', function () { this.end(${JSON.stringify(REQUEST)}); this.destroySoon(); });`;
    spawnSync(process.execPath, ['-e', script], { timeout: 10_000 });
    const client = connect(port, '127.0.0.1');
    client.on('error', () => undefined).write(REQUEST);
    await once(client, 'data');
    client.destroy();
    await until(() => new Promise((resolve) => server.getConnections((_, open) => resolve(open === 0))));
    expect(handled).toBe(1);
  });
});
