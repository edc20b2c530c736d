import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { openListener, type Listener } from '../../src/http/listener';
import { isNotTheApi } from '../support/described';
import { ask } from '../support/http';
import { expectProblem } from '../support/problem';
import { answersIn, converse } from '../support/raw';
import { until } from '../support/waiting';

/** A listener of its own with little patience, and clients who try it. */
describe('a connection', () => {
  const patience = { headersMs: 200, requestMs: 400, keepAliveMs: 100, silenceMs: 500 };
  const LATEST_MS = 5_000;
  let listener: Listener;
  let sockets: Socket[] = [];

  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    sockets.push(request.socket);
    request.resume();
    request.once('end', () => response.end(request.url === '/large' ? 'x'.repeat(200_000) : '{}'));
  };

  beforeAll(async () => {
    const names = { traceHeader: 'SVC-TRACE-ID', publicUrl: '' };
    listener = await openListener(handle, { host: '127.0.0.1', port: 0, ...names, patience });
    isNotTheApi(listener.url);
  });
  beforeEach(() => (sockets = []));
  afterEach(async () => {
    expect((await ask(`${listener.url}/`)).status).toBe(200);
  });
  afterAll(() => listener.close(0));

  const ended = async (closed: Promise<void>): Promise<number> => {
    const began = Date.now();
    await closed;
    return Date.now() - began;
  };

  /** Sends a piece again and again until it is refused. */
  const trickle = async (start: string, piece: string) => {
    const talk = converse(listener.url);
    talk.socket.write(start);
    const drops = setInterval(() => talk.socket.write(piece), 20);
    const ms = await ended(talk.closed);
    clearInterval(drops);
    return { ms, answers: answersIn(talk.received()) };
  };

  it('that says nothing is closed', async () => {
    const { closed } = converse(listener.url);
    expect(await ended(closed)).toBeLessThan(LATEST_MS);
  });

  it('whose headers drip is refused in time', async () => {
    const { ms, answers } = await trickle('GET / HTTP/1.1\r\nHost: x\r\n', 'X: y\r\n');
    expect(ms).toBeLessThan(LATEST_MS);
    expectProblem(answers[0]!, { status: 408, code: 'request_too_slow' });
  });

  it('whose body drips is refused in time', async () => {
    const { ms, answers } = await trickle('PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n', 'x');
    expect(ms).toBeLessThan(LATEST_MS);
    expectProblem(answers[0]!, { status: 408, code: 'request_too_slow' });
  });

  it('whose chunks drip is refused in time', async () => {
    const start = 'PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
    const { ms, answers } = await trickle(start, '1\r\nx\r\n');
    expect(ms).toBeLessThan(LATEST_MS);
    expectProblem(answers[0]!, { status: 408, code: 'request_too_slow' });
  });

  it('that is kept alive and idle is closed', async () => {
    const { socket, closed, received } = converse(listener.url);
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(await ended(closed)).toBeLessThan(LATEST_MS);
    expect(received()).toMatch(/^HTTP\/1.1 200 /);
  });

  it('that does not read its answers is closed', async () => {
    const { socket } = converse(listener.url);
    await once(socket, 'connect');
    socket.pause();
    socket.write('GET /large HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(200));
    await until(() => sockets.length > 0);
    const gone = once(sockets[0]!, 'close');
    const began = Date.now();
    await gone;
    expect(Date.now() - began).toBeLessThan(LATEST_MS + patience.silenceMs);
    socket.destroy();
  });

  it('among many that say nothing is served', async () => {
    const silent = Array.from({ length: 300 }, () => converse(listener.url));
    await Promise.all(silent.map(({ socket }) => once(socket, 'connect')));
    const began = Date.now();
    expect((await ask(`${listener.url}/`)).status).toBe(200);
    expect(Date.now() - began).toBeLessThan(1_000);
    await Promise.all(silent.map(({ closed }) => closed));
  });
});
