import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { besideForTests } from '../support/beside';
import { ask, received } from '../support/http';
import { expectProblem } from '../support/problem';
import { serviceForTests } from '../support/service';

const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
const bytes = (...dependencies: readonly (string | readonly number[])[]): Buffer =>
  Buffer.concat(
    dependencies.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part))),
  );

const service = serviceForTests();

describe('bad input', () => {
  const by = besideForTests(service);
  let events: number;

  const put = (
    body: string | Buffer | undefined,
    headers: Record<string, string> = { 'Content-Type': 'application/json' },
  ) =>
    received(`${service.url}/tenants/self`, {
      method: 'PUT',
      headers: { 'SVC-API-KEY': service.key, ...headers },
      ...(body === undefined ? {} : { body }),
    });

  beforeAll(async () => {
    events = await by.count();
  });
  afterEach(async () => {
    expect(await by.count()).toBe(events);
  });

  describe('400', () => {
    it.each<[string, string | Buffer, ...string[]]>([
      ['malformed JSON', '{"name":', 'body'],
      ['trailing garbage', '{"name":"A"} x', 'body'],
      ['nothing', '', 'body'],
      ['only spaces', ' \n\t ', 'body'],
      ['null', 'null', 'body'],
      ['an array', '[{"name":"A"}]', 'body'],
      ['a number', '42', 'body'],
      ['no name', '{}', 'name'],
      ['a null name', '{"name":null}', 'name'],
      ['a number as name', '{"name":1}', 'name'],
      ['an empty name', '{"name":""}', 'name'],
      ['201 characters', `{"name":"${'x'.repeat(201)}"}`, 'name'],
      ['invalid UTF-8', bytes('{"name":"', [0xc3, 0x28], '"}'), 'body'],
      ['truncated UTF-8', bytes('{"name":"A', [0xe2, 0x82], '"}'), 'body'],
      ['invalid UTF-8 in an ignored member', bytes('{"name":"A","x":"', [0xff], '"}'), 'body'],
      ['UTF-16', Buffer.from('\ufeff{"name":"A"}', 'utf16le'), 'body'],
      ['settings as text', '{"name":"A","settings":"true"}', 'settings'],
      [
        'a boolean setting',
        '{"name":"A","settings":{"fingerprint_tokens":true}}',
        'settings.fingerprint_tokens',
      ],
      [
        'a setting in capitals',
        '{"name":"A","settings":{"fingerprint_tokens":"TRUE"}}',
        'settings.fingerprint_tokens',
      ],
      ['an unknown setting', '{"name":"A","settings":{"colour":"red"}}', 'settings.colour'],
      [
        'a setting named constructor',
        '{"name":"A","settings":{"constructor":"true"}}',
        'settings.constructor',
      ],
      [
        'everything wrong at once',
        '{"name":"","settings":{"fingerprint_tokens":1,"deduplicate_tokens":"no","x":1}}',
        'name',
        'settings.deduplicate_tokens',
        'settings.fingerprint_tokens',
        'settings.x',
      ],
      ['__proto__', '{"name":"A","__proto__":{"x":1}}', 'body'],
      ['__proto__ inside settings', '{"name":"A","settings":{"__proto__":{"x":1}}}', 'body'],
      ['__proto__ escaped', '{"name":"A","\\u005f_proto__":{"x":1}}', 'body'],
      ['ten thousand levels', deep(10_000), 'body'],
      ['ten thousand levels as name', `{"name":${deep(10_000)}}`, 'name'],
      [
        'ten thousand levels of objects',
        `{"settings":${'{"x":'.repeat(10_000)}1${'}'.repeat(10_000)},"name":"A"}`,
        'settings.x',
      ],
      ['unclosed levels', '['.repeat(50_000), 'body'],
    ])('%s', async (_, body, ...fields) => {
      const response = await put(body);
      expectProblem(response, 400, 'validation_failed', ...fields);
    });

    it.each<[string, Buffer, string]>([
      ['gzip that is not gzip', Buffer.from('{"name":"A"}'), 'gzip'],
      ['truncated gzip', gzipSync('{"name":"A"}').subarray(0, 20), 'gzip'],
      [
        'gzip with a wrong checksum',
        (() => {
          const b = gzipSync('{"name":"A"}');
          b[b.length - 8]! ^= 255;
          return b;
        })(),
        'gzip',
      ],
      ['deflate that is not deflate', Buffer.from('nonsense'), 'deflate'],
      ['gzip of malformed JSON', gzipSync('{"name"'), 'gzip'],
    ])('%s', async (_, body, encoding) => {
      const response = await put(body, { 'Content-Type': 'application/json', 'Content-Encoding': encoding });
      expectProblem(response, 400, 'validation_failed', 'body');
    });

    it('names the maximum length of a name', async () => {
      const { json } = await put(`{"name":"${'x'.repeat(201)}"}`);
      expect(json.errors.name).toEqual(['must be at most 200 characters long']);
    });
  });

  describe('413', () => {
    const tooLarge = `{"name":"${'x'.repeat(70_000)}"}`;

    it('one byte too many', async () => {
      const body = JSON.stringify({ name: '', id: 'x'.repeat(65_536 - 19) });
      expect(Buffer.byteLength(body)).toBe(65_536);
      expectProblem(await put(body), 400, 'validation_failed', 'name');
      expectProblem(await put(`${body} `), 413, 'body_too_large');
    });

    it.each([
      ['too large', tooLarge],
      ['much too large', 'x'.repeat(5_000_000)],
    ])('%s', async (_, body) => {
      const response = await put(body);
      expectProblem(response, 413, 'body_too_large');
      expect(response.json.detail).toContain('65536');
    });

    it('too large in chunks, without Content-Length', async () => {
      const stream = new ReadableStream({
        start: (controller) => {
          for (let i = 0; i < 100; i++) controller.enqueue(Buffer.alloc(1_000, 32));
          controller.close();
        },
      });
      const response = await received(`${service.url}/tenants/self`, {
        method: 'PUT',
        headers: { 'SVC-API-KEY': service.key, 'Content-Type': 'application/json' },
        body: stream,
        duplex: 'half',
      });
      expectProblem(response, 413, 'body_too_large');
    });

    it('a small body that decompresses to a hundred megabytes', async () => {
      const bomb = gzipSync(Buffer.alloc(100_000_000, 32));
      const headers = { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' };
      const small = bomb.subarray(0, 60_000);
      expectProblem(await put(small, headers), 413, 'body_too_large');
      expectProblem(await put(bomb, headers), 413, 'body_too_large');
    });
  });

  describe('415', () => {
    it.each([
      'text/plain',
      'application/merge-patch+json',
      'application/json-patch+json',
      'application/vnd.api+json',
      'application/problem+json; charset=utf-8',
      'text/json',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/xml',
      'application/octet-stream',
      'json',
      'nonsense',
      '*/*',
      'application/json; charset=latin1',
      'application/json; charset=iso-8859-1',
      'application/json; charset=utf-16',
      'application/json; charset="windows-1252"',
    ])('%s', async (type) => {
      const response = await put('{"name":"A"}', { 'Content-Type': type });
      expectProblem(response, 415, 'unsupported_media_type');
    });

    it('no Content-Type', async () => {
      expectProblem(await put(Buffer.from('{"name":"A"}'), {}), 415, 'unsupported_media_type');
    });

    it.each(['compress', 'zstd', 'nonsense', 'gzip, gzip'])('encoded with %s', async (encoding) => {
      const headers = { 'Content-Type': 'application/json', 'Content-Encoding': encoding };
      expectProblem(await put('{"name":"A"}', headers), 415, 'unsupported_media_type');
    });
  });
});

describe('unusual but valid input', () => {
  it.each<[string, string | Buffer, Record<string, string>?]>([
    ['application/json in capitals', '{"name":"A"}', { 'Content-Type': 'APPLICATION/JSON' }],
    ['a charset', '{"name":"A"}', { 'Content-Type': 'application/json; charset=UTF-8' }],
    ['a quoted charset', '{"name":"A"}', { 'Content-Type': 'application/json;charset="utf8"' }],
    ['a type with parameters', '{"name":"A"}', { 'Content-Type': 'Application/JSON; charset="utf-8"; v=1' }],
    ['GZIP', gzipSync('{"name":"A"}'), { 'Content-Encoding': 'GZIP' }],
    ['a byte order mark', '\ufeff{"name":"A"}'],
    ['gzip', gzipSync('{"name":"A"}'), { 'Content-Encoding': 'gzip' }],
    ['deflate', deflateSync('{"name":"A"}'), { 'Content-Encoding': 'deflate' }],
    ['brotli', brotliCompressSync('{"name":"A"}'), { 'Content-Encoding': 'br' }],
    ['identity', '{"name":"A"}', { 'Content-Encoding': 'identity' }],
    ['deep members that are ignored', `{"name":"A","id":${deep(10_000)}}`],
    ['__proto__ as a value', '{"name":"A","id":"__proto__"}'],
    ['the last of two names', '{"name":"B","name":"A"}'],
  ])('%s', async (_, body, headers = {}) => {
    const response = await ask(`${service.url}/tenants/self`, {
      method: 'PUT',
      key: service.key,
      headers,
      body,
    });
    expect(response).toMatchObject({ status: 200, json: { name: 'A' } });
  });
});
