import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { pipeline, type Readable } from 'node:stream';
import { streamBody } from '../../src/http/routes/stream-body';
import { until } from '../support/waiting';

/** More than all buffers between two sockets of this machine hold. */
const TEXTS = 400;
const TEXT = `${'x'.repeat(65_535)}\n`;
const SILENCE_MS = 300;

let finished = 0;

async function* texts(): AsyncGenerator<string> {
  try {
    for (let sent = 0; sent < TEXTS; sent += 1) yield TEXT;
  } finally {
    finished += 1;
  }
}

describe('a stream whose reader takes nothing', () => {
  let server: Server;
  let body: Readable;
  let closed = 0;
  beforeAll(async () => {
    server = createServer((_, response) => {
      body = streamBody(texts(), () => void (closed += 1));
      pipeline(body, response, () => undefined);
    }).listen(0, '127.0.0.1');
    server.setTimeout(SILENCE_MS);
    await once(server, 'listening');
  });
  beforeEach(() => {
    [closed, finished] = [0, 0];
  });
  afterEach(() => until(() => finished === 1, 2_000, 'its source was left open'));
  afterAll(() => server.close());

  const ask = async (): Promise<Socket> => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').pause();
    const asked = once(server, 'request');
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await asked;
    return socket;
  };

  it('is closed with its connection, and leaves nothing open', async () => {
    const socket = await ask();
    await until(() => closed === 1);
    expect(body.destroyed).toBe(true);
    socket.on('error', () => undefined).resume();
    await until(() => socket.closed);
  });

  it('has its source closed if the reader disconnects', async () => {
    const socket = await ask();
    await until(() => body.readableLength > 0);
    socket.destroy();
    await until(() => closed === 1);
    expect(body.destroyed).toBe(true);
  });
});
