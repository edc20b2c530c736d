import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { besideForTests } from '../support/beside';
import { expectProblem } from '../support/problem';
import { answersIn, converse, sendRaw } from '../support/raw';
import { serviceForTests } from '../support/service';
import { until } from '../support/waiting';

const service = serviceForTests();
const by = besideForTests(service);

/** What no well-behaved client sends: written to the socket by hand. */
describe('bad HTTP', () => {
  let events: number;

  const KEY = (): string => `SVC-API-KEY: ${service.key}\r\n`;
  const HOST = 'Host: localhost\r\n';
  const JSON_TYPE = 'Content-Type: application/json\r\n';
  const CLOSE = 'Connection: close\r\n';
  const put = (headers: string): string =>
    `PUT /tenants/self HTTP/1.1\r\n${HOST}${KEY()}${JSON_TYPE}${headers}\r\n`;
  const only = async (...dependencies: readonly (string | Buffer)[]) => {
    const answers = await sendRaw(service.url, ...dependencies);
    expect(answers).toHaveLength(1);
    return answers[0]!;
  };

  beforeAll(async () => {
    events = await by.count();
  });
  afterEach(async () => {
    expect(await by.count()).toBe(events);
  });

  /** Node's HTTP server answers by itself: there is no request yet. */
  it.each([
    ['garbage', 'hello?\r\n\r\n', 400],
    ['a NUL in a header', `GET /permissions HTTP/1.1\r\n${HOST}X: a\u0000b\r\n\r\n`, 400],
    ['no Host in HTTP/1.1', 'GET /permissions HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    ['TLS', Buffer.from('160301020001000001fc0303', 'hex'), 400],
    ['a path of 100 kB', `GET /${'x'.repeat(100_000)} HTTP/1.1\r\n${HOST}\r\n`, 431],
    ['many headers', `GET / HTTP/1.1\r\n${HOST}${'X-Y: z\r\n'.repeat(5_000)}\r\n`, 431],
  ])('%s', async (_, bytes, status) => {
    const response = await only(bytes);
    expect([response.status, response.text]).toEqual([status, '']);
  });

  /** A request follows one whose end is given in two ways: a server that went by the other one would execute it. */
  describe('smuggles in no second request with', () => {
    const hidden = (): string => `${put('Content-Length: 19\r\n')}{"name":"Smuggled"}`;

    it.each([
      ['an unknown encoding', 'Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n'],
      ['two encodings', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n'],
      ['chunked inside another encoding', 'Transfer-Encoding: chunked, gzip\r\n'],
      ['a tab before the encoding', 'Transfer-Encoding:\tchunked\r\nContent-Length: 5\r\n'],
      ['a space before the colon', 'Transfer-Encoding : chunked\r\nContent-Length: 5\r\n'],
      ['a folded header', 'Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n'],
      ['a bare carriage return', 'X: a\rTransfer-Encoding: chunked\r\nContent-Length: 5\r\n'],
      ['a bare line feed', 'X: a\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n'],
      ['a length with a sign', 'Content-Length: +5\r\n'],
      ['a length in hexadecimal', 'Content-Length: 0x5\r\n'],
      ['a list of lengths', 'Content-Length: 5, 5\r\n'],
      ['the same length twice', 'Content-Length: 5\r\nContent-Length: 5\r\n'],
    ])('%s', async (_, headers) => {
      expect((await only(`${put(headers)}0\r\n\r\n${hidden()}`)).status).toBe(400);
    });

    it.each([
      ['a line feed in a chunk extension', '2;\nxx\r\n{}\r\n0\r\n\r\n'],
      ['chunks that end in line feeds', '2\n{}\n0\n\n'],
      ['a negative chunk', '-1\r\n{}\r\n0\r\n\r\n'],
    ])('%s', async (_, body) => {
      expect((await only(`${put('Transfer-Encoding: chunked\r\n')}${body}${hidden()}`)).status).toBe(400);
    });

    it('a body on GET, or on a refused request', async () => {
      const [length, next] = [hidden().length, `GET /nowhere HTTP/1.1\r\n${HOST}${KEY()}${CLOSE}\r\n`];
      for (const [start, status] of [
        [`GET /permissions HTTP/1.1\r\n${HOST}${KEY()}`, 200],
        [`PUT /tenants/self HTTP/1.1\r\n${HOST}${JSON_TYPE}`, 401],
        [`PUT /nowhere HTTP/1.1\r\n${HOST}${KEY()}`, 404],
      ] as const) {
        const { socket, received, closed } = converse(service.url);
        socket.write(`${start}Content-Length: ${length}\r\n\r\n${hidden()}${next}`);
        await closed;
        expect(answersIn(received()).map((response) => response.status)).toEqual([status, 404]);
      }
    });

    it('a request in the trailer of a body', async () => {
      const trailer = `SVC-API-KEY: ${service.key}\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`;
      const response = await only(`${put('Transfer-Encoding: chunked\r\n')}2\r\n{}\r\n0\r\n${trailer}`);
      expect(response.status).toBe(431);
    });
  });

  describe('404', () => {
    it.each([
      '//',
      '//permissions',
      '/permissions//',
      '/permissions///',
      '/Permissions',
      '/permissions/x',
      '/tenants',
      '/tenants/self//',
      '/tenants//self',
      '/tenants%2Fself',
      '/tenants/%73elf',
      '/tenants/self%00',
      '/tenants/%zz',
      '/%',
      '/%c3%28',
      '/../permissions',
      '/tenants/./self',
      '/a\\b',
      '/problems/nope',
      '/problems/NOT_FOUND',
      '/problems/not_found.json',
      '/problems/not_found/x',
      '/problems/__proto__',
      '/problems/constructor',
      `/${'x'.repeat(8_000)}`,
      '*',
    ])('%s', async (target) => {
      const response = await only(`GET ${target} HTTP/1.1\r\n${HOST}${KEY()}${CLOSE}\r\n`);
      expectProblem(response, 404, 'not_found');
    });

    it.each(['OPTIONS', 'PATCH', 'TRACE', 'PROPFIND', 'DELETE', 'POST', 'PUT'])(
      '%s of a path that does not exist',
      async (method) => {
        const response = await only(`${method} /permissions// HTTP/1.1\r\n${HOST}${KEY()}${CLOSE}\r\n`);
        expectProblem(response, 404, 'not_found');
      },
    );
  });

  it.each(['TRACE', 'PATCH', 'POST', 'PROPFIND'])('405 for %s', async (method) => {
    const response = await only(`${method} /tenants/self HTTP/1.1\r\n${HOST}${KEY()}${CLOSE}\r\n`);
    expectProblem(response, 405, 'method_not_allowed');
    expect(response.headers.get('allow')).toBe('DELETE, GET, HEAD, OPTIONS, PUT');
  });

  describe('413', () => {
    it.each(['65537', '2147483649', '4294967296', '99999999999999'])(
      'a length of %s, before the body is sent',
      async (length) => {
        const response = await only(put(`Content-Length: ${length}\r\n${CLOSE}`));
        expectProblem(response, 413, 'body_too_large');
      },
    );

    it('leaves the connection usable after a compressed body was abandoned', async () => {
      const body = gzipSync(randomBytes(2_000_000));
      const next = `GET /nowhere HTTP/1.1\r\n${HOST}${KEY()}${CLOSE}\r\n`;
      const chunk = [`${body.length.toString(16)}\r\n`, body, '\r\n0\r\n\r\n'];
      const headers = put('Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n');
      const [first, second] = await sendRaw(service.url, headers, ...chunk, next);
      expectProblem(first!, 413, 'body_too_large');
      expectProblem(second!, 404, 'not_found');
    });
  });

  describe('accepts', () => {
    it('HTTP/1.0 without Host', async () => {
      const response = await only(`GET /permissions HTTP/1.0\r\n${KEY()}\r\n`);
      expect(response.status).toBe(200);
      expect(response.json).toHaveLength(30);
    });

    it.each([
      'http://localhost/permissions?application_type=public',
      'http://user@localhost:1/permissions/?application_type=public#x',
      '/permissions?application_type=public#x?y',
    ])('the target %s', async (target) => {
      const response = await only(`GET ${target} HTTP/1.1\r\n${HOST}${KEY()}${CLOSE}\r\n`);
      expect(response.status).toBe(200);
      const types = response.json.map((row: { application_types: string[] }) => row.application_types);
      expect(types.every((of: string[]) => of.includes('public'))).toBe(true);
    });

    it('an Upgrade that is not supported', async () => {
      const upgrade = 'Upgrade: websocket\r\nConnection: upgrade, close\r\n';
      const response = await only(`GET /permissions HTTP/1.1\r\n${HOST}${KEY()}${upgrade}\r\n`);
      expect(response.status).toBe(200);
    });
  });
});

describe('a connection', () => {
  let before: number;
  const put = (length: number): string =>
    `PUT /tenants/self HTTP/1.1\r\nHost: x\r\nSVC-API-KEY: ${service.key}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n`;

  beforeEach(async () => {
    before = await by.count();
  });
  afterAll(() => expect(service.stderr()).not.toContain('rawPacket'));

  it('executes a write whose body takes longer to arrive than a response may', async () => {
    const conversation = converse(service.url);
    conversation.socket.write(`${put(12)}Connection: close\r\n\r\n{"name":`);
    const startedAt = Date.now();
    await until(() => Date.now() - startedAt > 2_200);
    conversation.socket.write('"B"}');
    await conversation.closed;
    const [response] = answersIn(conversation.received());
    expect([response!.status, response!.json.name]).toEqual([200, 'B']);
    expect(await by.count()).toBe(before + 1);
  });
});
