import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { openListener, type Listener } from '../../src/http/server';
import { isNotTheApi } from '../support/described';
import { answersIn, converse } from '../support/raw';
import { deferred, until } from '../support/waiting';

const listenerFor = async (
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  more: Partial<Parameters<typeof openListener>[1]> = {},
): Promise<Listener> => {
  const usual = { host: '127.0.0.1', port: 0, maxConnections: 1_000, onError: () => undefined };
  const listener = await openListener(handle, { ...usual, ...more });
  isNotTheApi(listener.url);
  return listener;
};

describe('a listener', () => {
  it('allows 10 s for headers, 20 s for a request, 30 s between two and 60 s of silence', async () => {
    let server: Server | undefined;
    const listener = await listenerFor((request, response) => {
      ({ server } = request.socket as Socket & { readonly server: Server });
      response.end('{}');
    });
    await (await fetch(listener.url)).text();
    await listener.close(0);
    expect(server).toMatchObject({
      headersTimeout: 10_000,
      requestTimeout: 20_000,
      keepAliveTimeout: 30_000,
      timeout: 60_000,
    });
  });

  it('closes connections beyond its maximum at once, and says so', async () => {
    const errors: string[] = [];
    const listener = await listenerFor((_, response) => response.end('{}'), {
      maxConnections: 1,
      onError: ({ message }) => void errors.push(message),
    });
    const first = converse(listener.url);
    first.socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await until(() => first.received() !== '');
    await converse(listener.url).closed;
    expect(errors).toEqual(['1 connections are open.']);
    first.socket.destroy();
    await until(async () => (await fetch(listener.url).catch(() => undefined))?.status === 200);
    await listener.close(0);
  });
});

/** One listener whose handler records its concurrency and the requests received. */
describe('pipelined requests', () => {
  let listener: Listener;
  let begun: string[] = [];
  let underWay = 0;
  let most = 0;
  let hold: Promise<void> | undefined;

  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    begun.push(request.url ?? '');
    underWay += 1;
    most = Math.max(most, underWay);
    response.once('close', () => (underWay -= 1));
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.once('end', () => {
      const body = Buffer.concat(chunks).toString();
      void (hold ?? Promise.resolve()).then(() =>
        setImmediate(() => response.end(`${request.url} ${body.length} ${body.slice(-4)};`)),
      );
    });
  };

  beforeAll(async () => {
    listener = await listenerFor(handle);
  });
  beforeEach(() => {
    begun = [];
    most = 0;
    hold = undefined;
  });
  afterAll(() => listener.close(0));

  const put = (at: number, body: string, more = ''): string =>
    `PUT /${at} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n${more}\r\n${body}`;
  const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, at) => at);
  const puts = (count: number): string =>
    numbers(count)
      .map((at) => put(at, 'z'))
      .join('');

  it.each([0, 1, 5_000, 70_000])(
    'with bodies of %s bytes are handled one after the other, each complete',
    async (length) => {
      const bodyOf = (at: number): string =>
        String(at).padStart(4, '0').padStart(length, 'x').slice(0, length);
      const conversation = converse(listener.url);
      conversation.socket.write(
        numbers(31)
          .map((at) => put(at, bodyOf(at)))
          .join(''),
      );
      conversation.socket.write('GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      await conversation.closed;
      const expected = numbers(31).map((at) => `/${at} ${length} ${bodyOf(at).slice(-4)};`);
      expect(conversation.received().match(/\/[0-9a-z]+ [0-9]+ [0-9x]*;/g)).toEqual([
        ...expected,
        '/last 0 ;',
      ]);
      expect(most).toBe(1);
    },
  );

  it('close their connection if more than 32 are not answered', async () => {
    const { promise, resolve } = deferred();
    hold = promise;
    const allowed = converse(listener.url);
    allowed.socket.write(puts(32));
    const refused = converse(listener.url);
    refused.socket.write(puts(33));
    await refused.closed;
    expect(refused.received()).toBe('');
    resolve();
    await until(() => answersIn(allowed.received()).length === 32);
    allowed.socket.destroy();
    await until(() => underWay === 0);
  });

  it('are never started if their connection closes before their turn', async () => {
    const { promise, resolve } = deferred();
    hold = promise;
    const conversation = converse(listener.url);
    conversation.socket.write(puts(20));
    await until(() => begun.length > 0);
    conversation.socket.resetAndDestroy();
    await conversation.closed;
    await until(() => underWay === 0);
    resolve();
    const other = converse(listener.url);
    other.socket.write(put(100, '', 'Connection: close\r\n'));
    await other.closed;
    expect(begun).toEqual(['/0', '/100']);
  });
});

describe('a listener that closes', () => {
  const LENGTH = 50_000_000;

  /** It has an idle connection, and a response that is larger than what the system takes before its client reads it. */
  const withSlowClient = async () => {
    const listener = await listenerFor((request, response) =>
      response.end(request.url === '/' ? '{}' : Buffer.alloc(LENGTH, 'x')),
    );
    const idle = converse(listener.url);
    idle.socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await until(() => idle.received().endsWith('{}'));
    const slow = converse(listener.url);
    slow.socket.once('data', () => slow.socket.pause());
    slow.socket.write('GET /large HTTP/1.1\r\nHost: x\r\n\r\n');
    await until(() => slow.received() !== '');
    return { listener, idle, slow };
  };

  it('waits for requests that have begun, but not for connections on which nothing has arrived', async () => {
    let begun = 0;
    const handle = (request: IncomingMessage, response: ServerResponse): void => {
      begun += 1;
      request.resume();
      request.once('end', () => response.end('{}'));
    };
    const listener = await listenerFor(handle);
    const unused = converse(listener.url);
    const busy = converse(listener.url);
    busy.socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{');
    await until(() => begun === 1);
    const closed = listener.close(60_000);
    await unused.closed;
    expect(busy.received()).toBe('');
    busy.socket.write('}');
    await Promise.all([closed, busy.closed]);
    expect(answersIn(busy.received()).map(({ status }) => status)).toEqual([200]);
  });

  it('waits until a client has received all of its response, and closes idle connections meanwhile', async () => {
    const { listener, idle, slow } = await withSlowClient();
    const closed = listener.close(60_000);
    await idle.closed;
    slow.socket.resume();
    await Promise.all([closed, slow.closed]);
    const text = slow.received();
    expect(text.length - text.indexOf('\r\n\r\n') - 4).toBe(LENGTH);
  });
});
