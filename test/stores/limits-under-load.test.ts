import { besideForTests } from '../support/beside';
import { ask, type AskOptions } from '../support/http';
import { expectProblem } from '../support/problem';
import { sendRaw } from '../support/raw';
import { loggedBy, serviceForTests } from '../support/service';
import { until } from '../support/waiting';

const POLICY = '"global";q=1000;w=10';
const FORWARDED_FOR = 'X-Forwarded-For';

/** Behind one proxy, played by the test: every address has its own counters. */
describe('the specified limits', () => {
  const service = serviceForTests({ RATE_LIMITS: '', TRUSTED_PROXIES: '1' });
  const by = besideForTests(service);

  const from = (address: string, path: string, asking: AskOptions = {}) =>
    ask(`${service.url}${path}`, { ...asking, headers: { [FORWARDED_FOR]: address, ...asking.headers } });
  const statuses = async (count: number, address: string, path: string, asking: AskOptions = {}) => {
    const all = await Promise.all(Array.from({ length: count }, () => from(address, path, asking)));
    return all.map(({ status }) => status);
  };
  const limits = async () => (await ask(`${service.operationsUrl}/readyz`)).json.limits;

  it('are reported to every holder of a key', async () => {
    const { status, json } = await from('192.0.2.1', '/limits', { key: service.key });
    expect(status).toBe(200);
    expect((json.rate_limits as { name: string }[]).map(({ name }) => name)).toEqual([
      'global',
      'portal',
      'tokens-search',
      'tokens-read',
      'tokens-create',
      'services',
    ]);
    expect(json.rate_limits[2]).toEqual({
      name: 'tokens-search',
      methods: ['POST'],
      paths: ['/tokens/search'],
      limit: 50,
      window_seconds: 10,
      block_seconds: 10,
    });
    expect(json.reactor).toEqual({ max_payload_bytes: 5_000_000, hot_concurrency: 1, timeout_seconds: 30 });
    const { tenantId } = await by.newTenant();
    const { key } = await by.newApplication(tenantId, 'public');
    expect((await from('192.0.2.1', '/limits', { key })).json).toEqual(json);
    expectProblem(await from('192.0.2.1', '/limits'), 401, 'key_refused');
  });

  describe('appear in the response to', () => {
    const key = () => service.key;
    const json = { 'Content-Type': 'application/json' };
    const answers: readonly [number, string, string, () => AskOptions][] = [
      [200, 'GET', '/tenants/self', () => ({ key: key() })],
      [304, 'GET', '/tenants/self', () => ({ key: key(), headers: { 'If-None-Match': '*' } })],
      [204, 'OPTIONS', '/tenants/self', () => ({ key: key() })],
      [200, 'GET', '/problems/not_found', () => ({})],
      [400, 'PUT', '/tenants/self', () => ({ key: key(), headers: json, body: '{' })],
      [401, 'GET', '/tenants/self', () => ({})],
      [404, 'GET', '/nowhere', () => ({ key: key() })],
      [413, 'PUT', '/tenants/self', () => ({ key: key(), body: 'x'.repeat(100_000) })],
    ];
    it.each(answers.map(([status, method, path, asking], at) => ({ status, method, path, asking, at })))(
      '$status $method $path',
      async ({ status, method, path, asking, at }) => {
        const response = await from(`192.0.3.${at}`, path, { method, ...asking() });
        expect(response.status).toBe(status);
        expect(response.headers.get('ratelimit-policy')).toBe(POLICY);
        expect(response.headers.get('ratelimit')).toBe('"global";r=999;t=10');
      },
    );

    it('paths that other services answer', async () => {
      const response = await from('192.0.2.30', '/tokens/search?x=y', { method: 'POST', key: service.key });
      expectProblem(response, 404, 'not_found');
      expect(response.headers.get('ratelimit-policy')).toBe(`${POLICY}, "tokens-search";q=50;w=10`);
      expect(response.headers.get('ratelimit')).toBe('"global";r=999;t=10, "tokens-search";r=49;t=10');
    });
  });

  it('allow 1000 requests and block the next ones', async () => {
    const before = await by.count();
    // Pipelined, so that even a busy machine gets all of them in within the window.
    const request = `GET /tenants/self HTTP/1.1\r\nHost: x\r\n${FORWARDED_FOR}: 192.0.2.40\r\n`;
    const some = `${`${request}\r\n`.repeat(24)}${request}Connection: close\r\n\r\n`;
    const sent = await Promise.all(Array.from({ length: 40 }, () => sendRaw(service.url, some)));
    expect(sent.flat().map(({ status }) => status)).toEqual(Array.from({ length: 1_000 }, () => 401));
    const blocks = (await limits()).blocks_started;
    const response = await from('192.0.2.40', '/tenants/self', { key: service.key });
    expectProblem(response, 429, 'rate_limited');
    expect(response.json.violated_policies).toEqual(['global']);
    expect(response.json.detail).toContain('1000 requests in 10 seconds');
    expect(response.headers.get('retry-after')).toBe('10');
    expect(response.headers.get('ratelimit-policy')).toBe(POLICY);
    expect(response.headers.get('ratelimit')).toBe('"global";r=0;t=10');
    const head = await from('192.0.2.40', '/problems/not_found', { method: 'HEAD' });
    expect([head.status, head.text]).toEqual([429, '']);
    expect(await statuses(20, '192.0.2.40', '/nowhere')).toEqual(Array.from({ length: 20 }, () => 429));
    expect((await from('192.0.2.41', '/tenants/self', { key: service.key })).status).toBe(200);

    const lines = () =>
      loggedBy(service, 'is blocked').filter((line) => line['client_address'] === '192.0.2.40');
    await until(() => lines().length > 0);
    expect(lines()).toEqual([
      expect.objectContaining({
        level: 40,
        limit: 'global',
        client_address: '192.0.2.40',
        block_seconds: 10,
        trace_id: response.json.trace_id,
      }),
    ]);
    expect((await limits()).blocks_started).toBe(blocks + 1);
    expect(await by.count()).toBe(before);
  });

  it('go by the last address in the forwarded header, not by those before it', async () => {
    const twice = `GET /nowhere HTTP/1.1\r\nHost: x\r\n${FORWARDED_FOR}: 192.0.2.60\r\n${FORWARDED_FOR}: 192.0.2.61\r\nConnection: close\r\n\r\n`;
    const [response] = await sendRaw(service.url, twice);
    expect(response!.headers.get('ratelimit')).toBe('"global";r=999;t=10');
    expect((await from('192.0.2.60', '/nowhere')).headers.get('ratelimit')).toMatch(/r=999/);
    expect((await from('192.0.2.60, 192.0.2.61', '/nowhere')).headers.get('ratelimit')).toMatch(/r=998/);
  });

  /** What is not an address counts as the connection's, which no other test here counts by. */
  it.each([
    ['192.0.2.70', ['::ffff:192.0.2.70', '::FFFF:192.0.2.70%eth0']],
    ['2001:db8:5::1', ['2001:DB8:5:0:1:2:3:4', '2001:db8:0005::', '2001:db8:5:0:1:2:192.0.2.1']],
    ['2001:db8:5:1::1', ['2001:db8:5:1::']],
    ['::1', ['::', '0::1:2:3:4', '::ffff:0:192.0.2.1']],
    ['1::2:3:4:5:6:7', ['1:0:2:3::']],
    ['fe80::1%eth0', ['fe80::2']],
    ['unknown', ['', '192.0.2.71:443', '[2001:db8:6::1]', '1:2:3', '192.0.2.256']],
  ])('count %s with %j, and with no other', async (first, others) => {
    const left: (string | undefined)[] = [];
    for (const address of [first, ...others])
      left.push(/r=([0-9]+)/.exec((await from(address, '/nowhere')).headers.get('ratelimit') ?? '')?.[1]);
    expect(left).toEqual([first, ...others].map((_, at) => String(999 - at)));
  });
});

describe('the limits of a service without proxies', () => {
  const service = serviceForTests({ RATE_LIMITS: 'global=5/1/1' });

  it('lift a block after its time and not before, however many requests arrive in between; forwarded headers change nothing', async () => {
    let number = 0;
    const status = async () => {
      number += 1;
      const headers = { [FORWARDED_FOR]: `192.0.2.${number}`, Forwarded: `for=192.0.2.${number}` };
      return (await ask(`${service.url}/nowhere`, { headers })).status;
    };
    let asked = Date.now();
    await until(async () => {
      asked = Date.now();
      return (await status()) === 429;
    });
    expect(number).toBeGreaterThan(5);
    await until(async () => (await status()) === 404);
    expect(Date.now() - asked).toBeGreaterThanOrEqual(1_000);
    expect(Date.now() - asked).toBeLessThan(3_000);
  });
});
