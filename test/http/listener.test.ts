import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { openListener, type Listener } from '../../src/http/listener';
import { isNotTheApi } from '../support/described';
import { ask } from '../support/http';
import { expectProblem } from '../support/problem';
import { answersIn, converse } from '../support/raw';
import { deferred, until } from '../support/waiting';

/** A listener that is not the API. Without time limits it has those of the service. */
const listenerFor = async (
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  more: Pick<Parameters<typeof openListener>[1], 'timeouts' | 'onError'> & { maxConnections?: number } = {},
): Promise<Listener> => {
  const names = { traceHeader: 'SVC-TRACE-ID', publicUrl: '', maxConnections: 1_000 };
  const listener = await openListener(handle, { host: '127.0.0.1', port: 0, ...names, ...more });
  isNotTheApi(listener.url);
  return listener;
};

/** A listener with short timeouts, and clients that run into them. */
describe('a connection', () => {
  const timeouts = { headersMs: 200, requestMs: 400, keepAliveMs: 100, silenceMs: 500 };
  const LATEST_MS = 5_000;
  let listener: Listener;
  let sockets: Socket[] = [];
  const errors: Error[] = [];

  let complete: string[] = [];

  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    sockets.push(request.socket);
    response.setHeader('RateLimit', '"global";r=999;t=10');
    request.resume();
    request.once('end', () => {
      complete.push(request.url ?? '');
      response.end(request.url === '/large' ? 'x'.repeat(200_000) : '{}');
    });
  };

  beforeAll(async () => {
    listener = await listenerFor(handle, { timeouts, onError: (error) => void errors.push(error) });
  });
  beforeEach(() => {
    sockets = [];
    complete = [];
  });
  afterEach(async () => {
    expect((await ask(`${listener.url}/`)).status).toBe(200);
  });
  afterAll(() => listener.close(0));

  const ended = async (closed: Promise<void>): Promise<number> => {
    const startedAt = Date.now();
    await closed;
    return Date.now() - startedAt;
  };

  /** Sends a piece again and again until the request is refused. */
  const trickle = async (start: string, piece: string) => {
    const conversation = converse(listener.url);
    conversation.socket.write(start);
    const drops = setInterval(() => conversation.socket.write(piece), 20);
    const ms = await ended(conversation.closed);
    clearInterval(drops);
    return { ms, answers: answersIn(conversation.received()) };
  };

  it('that sends nothing is closed', async () => {
    const { closed } = converse(listener.url);
    expect(await ended(closed)).toBeLessThan(LATEST_MS);
  });

  it('whose headers trickle in is refused in time', async () => {
    const { ms, answers } = await trickle('GET / HTTP/1.1\r\nHost: x\r\n', 'X: y\r\n');
    expect(ms).toBeLessThan(LATEST_MS);
    expectProblem(answers[0]!, { status: 408, code: 'request_too_slow' });
  });

  it('whose body trickles in is refused in time', async () => {
    const { ms, answers } = await trickle('PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n', 'x');
    expect(ms).toBeLessThan(LATEST_MS);
    expectProblem(answers[0]!, { status: 408, code: 'request_too_slow' });
  });

  it('whose body is late is refused as counted, and the request is not complete if the rest arrives after all', async () => {
    const { socket, closed, received } = converse(listener.url, { allowHalfOpen: true });
    socket.write('PUT /late HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{');
    await until(() => received() !== '', LATEST_MS, 'an answer');
    socket.end('}');
    await closed;
    const [response] = answersIn(received());
    expectProblem(response!, { status: 408, code: 'request_too_slow', instance: '/' });
    expect(response!.headers.get('ratelimit')).toBe('"global";r=999;t=10');
    expect((await ask(`${listener.url}/`)).status).toBe(200);
    expect(complete).toEqual(['/']);
  });

  it('that is idle after a request is closed', async () => {
    const { socket, closed, received } = converse(listener.url);
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(await ended(closed)).toBeLessThan(LATEST_MS);
    expect(received()).toMatch(/^HTTP\/1.1 200 /);
  });

  it('whose client does not read the responses is closed', async () => {
    const { socket } = converse(listener.url);
    await once(socket, 'connect');
    socket.pause();
    socket.write('GET /large HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(200));
    await until(() => sockets.length > 0);
    const gone = once(sockets[0]!, 'close');
    const startedAt = Date.now();
    await gone;
    expect(Date.now() - startedAt).toBeLessThan(LATEST_MS + timeouts.silenceMs);
    socket.destroy();
  });

  it('that cannot be accepted is reported', async () => {
    await ask(`${listener.url}/`);
    const { server } = sockets[0] as Socket & { readonly server: Server };
    const error = Object.assign(new Error('accept EMFILE'), { code: 'EMFILE' });
    server.emit('error', error);
    expect(errors).toEqual([error]);
  });

  it('is served among many that send nothing', async () => {
    const silent = Array.from({ length: 300 }, () => converse(listener.url));
    await Promise.all(silent.map(({ socket }) => once(socket, 'connect')));
    const startedAt = Date.now();
    expect((await ask(`${listener.url}/`)).status).toBe(200);
    expect(Date.now() - startedAt).toBeLessThan(1_000);
    await Promise.all(silent.map(({ closed }) => closed));
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

  it.each([0, 1, 900, 1_024, 5_000, 70_000])(
    'with bodies of %s bytes are handled one after the other, each complete',
    async (length) => {
      const bodyOf = (at: number): string =>
        String(at).padStart(4, '0').padStart(length, 'x').slice(0, length);
      const conversation = converse(listener.url);
      conversation.socket.write(
        numbers(50)
          .map((at) => put(at, bodyOf(at)))
          .join(''),
      );
      conversation.socket.write('GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      await conversation.closed;
      const expected = numbers(50).map((at) => `/${at} ${length} ${bodyOf(at).slice(-4)};`);
      expect(conversation.received().match(/\/[0-9a-z]+ [0-9]+ [0-9x]*;/g)).toEqual([
        ...expected,
        '/last 0 ;',
      ]);
      expect(most).toBe(1);
    },
  );

  it('get 100 Continue when it is their turn', async () => {
    const conversation = converse(listener.url);
    const start = 'PUT /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n';
    conversation.socket.write(`${put(0, 'abcd')}${start}\r\n`);
    await until(() => conversation.received().includes('HTTP/1.1 100 Continue'));
    expect(conversation.received().indexOf('/0 4 abcd;')).toBeLessThan(
      conversation.received().indexOf('100 Continue'),
    );
    conversation.socket.write(`efgh${put(1, 'ijkl', 'Connection: close\r\n')}`);
    await conversation.closed;
    expect(conversation.received()).toMatch(/\/a 4 efgh;.*\/1 4 ijkl;$/s);
  });

  it('are refused only after the valid ones before them are answered', async () => {
    const conversation = converse(listener.url);
    conversation.socket.write(
      `${numbers(40)
        .map((at) => put(at, 'y'.repeat(300)))
        .join('')}GARBAGE\r\n\r\n`,
    );
    await conversation.closed;
    const answers = answersIn(conversation.received());
    expect(answers.map(({ status }) => status)).toEqual([...numbers(40).map(() => 200), 400]);
  });

  it('are never started if their connection closes before their turn', async () => {
    const { promise, resolve } = deferred();
    hold = promise;
    const conversation = converse(listener.url);
    conversation.socket.write(
      numbers(40)
        .map((at) => put(at, 'z'))
        .join(''),
    );
    await until(() => begun.length > 0);
    conversation.socket.resetAndDestroy();
    await conversation.closed;
    const other = converse(listener.url);
    other.socket.write(put(100, '', 'Connection: close\r\n'));
    await until(() => begun.length > 1);
    resolve();
    await other.closed;
    await until(() => underWay === 0);
    expect(begun).toEqual(['/0', '/100']);
  });
});

describe('a listener without time limits of its own', () => {
  it('allows 10 s for headers, 20 s for a request and 30 s between two', async () => {
    let server: Server | undefined;
    const handle = (request: IncomingMessage, response: ServerResponse): void => {
      ({ server } = request.socket as Socket & { readonly server: Server });
      response.end('{}');
    };
    const listener = await listenerFor(handle);
    await ask(`${listener.url}/`);
    await listener.close(0);
    expect(server).toMatchObject({
      headersTimeout: 10_000,
      requestTimeout: 20_000,
      keepAliveTimeout: 30_000,
      timeout: 60_000,
    });
  });
});

describe('a listener with a maximum of connections', () => {
  it('closes those beyond it at once, and says so', async () => {
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

describe('a listener that closes', () => {
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
    await closed;
    expect(answersIn(busy.received()).map(({ status }) => status)).toEqual([200]);
  });

  it('waits until a client has received all of its response, and closes idle connections meanwhile', async () => {
    const length = 50_000_000;
    let flushed = false;
    const handle = (request: IncomingMessage, response: ServerResponse): void => {
      if (request.url === '/') return void response.end('{}');
      response.once('finish', () => (flushed = true));
      response.end(Buffer.alloc(length, 'x'));
    };
    const listener = await listenerFor(handle);
    const idle = converse(listener.url);
    idle.socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await until(() => idle.received().endsWith('{}'));
    const slow = converse(listener.url);
    slow.socket.once('data', () => slow.socket.pause());
    slow.socket.write('GET /large HTTP/1.1\r\nHost: x\r\n\r\n');
    await until(() => slow.received() !== '');
    const closed = listener.close(60_000);
    await idle.closed;
    expect(flushed).toBe(false);
    slow.socket.resume();
    await Promise.all([closed, slow.closed]);
    const text = slow.received();
    expect(text.length - text.indexOf('\r\n\r\n') - 4).toBe(length);
  });
});
