import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { once } from 'node:events';
import { pipeline, type Readable } from 'node:stream';
import { streamBody } from '../../src/http/routes/stream-body';
import { until } from '../support/waiting';

/** More than all buffers between two sockets of this machine hold. */
const TEXTS = 400;
const TEXT = `${'x'.repeat(65_535)}\n`;
const STALLED_MS = 300;
const MEGABYTE = 1_048_576;

let finished = 0;

async function* texts(stalled: AbortSignal): AsyncGenerator<string> {
  try {
    for (let sent = 0; sent < TEXTS; sent += 1) {
      yield TEXT;
      if (stalled.aborted) return yield 'the end\n';
    }
  } finally {
    finished += 1;
  }
}

describe('a stream whose reader has stalled', () => {
  let server: Server;
  let body: Readable;
  let closed = 0;
  let stalledMs = STALLED_MS;
  beforeAll(async () => {
    server = createServer((_, response) => {
      const stalled = new AbortController();
      const onClosed = (): void => void (closed += 1);
      body = streamBody(texts(stalled.signal), {
        stalled,
        onClosed,
        stalledMs,
        lastMs: STALLED_MS,
      });
      pipeline(body, response, () => undefined);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  beforeEach(() => {
    [closed, finished, stalledMs] = [0, 0, STALLED_MS];
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

  it('is cut off, and leaves nothing open', async () => {
    const startedAt = performance.now();
    const socket = await ask();
    await until(() => closed === 1);
    const tookMs = performance.now() - startedAt;
    expect(tookMs).toBeGreaterThanOrEqual(2 * STALLED_MS - 5);
    expect(tookMs).toBeLessThan(2 * STALLED_MS + 1_000);
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

  it('tells the reader why if it resumes reading in time', async () => {
    const socket = await ask();
    await until(() => body.readableEnded || body.readableLength > TEXT.length);
    let text = '';
    socket.on('data', (chunk: Buffer) => (text = (text + chunk.toString()).slice(-40))).resume();
    await until(() => closed === 1);
    await until(() => text.endsWith('0\r\n\r\n'));
    expect(text).toContain('the end\n');
    socket.destroy();
  });

  it('is not cut off because this process was suspended', async () => {
    const socket = await ask();
    await until(() => body.readableLength > 0);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * STALLED_MS);
    let text = '';
    socket.on('data', (chunk: Buffer) => (text = chunk.toString().slice(-40))).resume();
    await until(() => text.endsWith('0\r\n\r\n'));
    expect(text).not.toContain('the end');
    socket.destroy();
  });

  it('is not cut off while the reader reads something now and then', async () => {
    stalledMs = 1_000;
    const socket = await ask();
    let [taken, pauses, text] = [0, 0, ''];
    socket.on('data', (chunk: Buffer) => {
      taken += chunk.length;
      text = chunk.toString().slice(-40);
      if (Math.floor(taken / MEGABYTE) === pauses) return;
      pauses += 1;
      socket.pause();
    });
    const taking = setInterval(() => socket.resume(), stalledMs / 20);
    await until(() => text.endsWith('0\r\n\r\n'), 20_000);
    clearInterval(taking);
    expect(taken).toBeGreaterThan(TEXTS * TEXT.length);
    expect(text).not.toContain('the end');
    socket.destroy();
  });
});
