import { request } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { ask } from '../support/http';
import { expectProblem } from '../support/problem';
import { startService, type Service } from '../support/service';

const OURS = 'https://app.example.com';
const FOREIGN = 'https://evil.example.com';

interface Whole {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** Without the headers that `fetch` adds, and the encoding that it undoes. */
const plain = (url: string, headers: Record<string, string>, method = 'GET'): Promise<Whole> =>
  new Promise((resolve, reject) => {
    request(url, { method, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) }),
      );
    })
      .on('error', reject)
      .end();
  });

describe('the API, called by browsers', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ CORS_ORIGINS: `${OURS},http://localhost:3000`, RATE_LIMITS: '' });
  });
  afterAll(async () => {
    await service.stop();
  });

  const from = (origin: string, more: Record<string, string> = {}) =>
    plain(`${service.url}/tenants/self`, { Origin: origin, 'SVC-API-KEY': service.key, ...more });
  const preflight = (origin: string) =>
    plain(
      `${service.url}/tenants/self`,
      {
        Origin: origin,
        'Access-Control-Request-Method': 'PUT',
        'Access-Control-Request-Headers': 'svc-api-key,content-type',
      },
      'OPTIONS',
    );

  describe('from pages of other origins', () => {
    it('exposes responses and the headers that matter if the origin is allowed', async () => {
      const { status, headers } = await from(OURS);
      expect(status).toBe(200);
      expect(headers['access-control-allow-origin']).toBe(OURS);
      expect(headers['access-control-expose-headers']).toContain('ETag');
      expect(headers['access-control-expose-headers']).toContain('SVC-READ-PENDING');
      expect(headers['vary']).toMatch(/Origin/);
      expect(headers['access-control-allow-credentials']).toBeUndefined();
    });

    it('exposes errors as well', async () => {
      const { status, headers } = await from(OURS, { 'SVC-API-KEY': 'key_wrong' });
      expect([status, headers['access-control-allow-origin']]).toEqual([401, OURS]);
    });

    it('exposes nothing to an origin that is not allowed', async () => {
      for (const origin of [FOREIGN, 'null', `${OURS}.evil.example`, OURS.replace('https', 'http')]) {
        const { headers } = await from(origin);
        expect(headers['access-control-allow-origin']).toBeUndefined();
        expect(headers['vary']).toMatch(/Origin/);
      }
    });

    it('answers preflights without a key', async () => {
      const { status, headers, body } = await preflight(OURS);
      expect([status, body.toString()]).toEqual([204, '']);
      expect(headers['access-control-allow-methods']).toContain('PUT');
      expect(headers['access-control-allow-headers']?.toString().toLowerCase()).toContain('svc-api-key');
      expect(headers['ratelimit']).toBeDefined();
      expect((await preflight(FOREIGN)).status).toBe(401);
    });

    it('sends no CORS headers, and answers preflights with 401, where no origin is allowed', async () => {
      const other = await startService();
      try {
        const { headers } = await plain(`${other.url}/permissions`, {
          Origin: OURS,
          'SVC-API-KEY': other.key,
        });
        expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
        expectProblem(
          await ask(`${other.url}/tenants/self`, { method: 'OPTIONS', headers: { Origin: OURS } }),
          {
            status: 401,
            code: 'key_refused',
            instance: '/tenants/self',
          },
        );
      } finally {
        await other.stop();
      }
    });
  });

  describe('compression', () => {
    const key = () => ({ 'SVC-API-KEY': service.key });
    const whole = () => plain(`${service.url}/permissions`, key());

    it('is used for a long response if the client accepts it', async () => {
      const { headers, body } = await plain(`${service.url}/permissions`, {
        ...key(),
        'Accept-Encoding': 'gzip, br',
      });
      expect([headers['content-encoding'], headers['content-length']]).toEqual(['gzip', String(body.length)]);
      const plainly = await whole();
      expect(plainly.headers['content-encoding']).toBeUndefined();
      expect(plainly.headers['vary']).toMatch(/Accept-Encoding/);
      expect(gunzipSync(body)).toEqual(plainly.body);
      expect(body.length).toBeLessThan(plainly.body.length / 2);
    });

    it.each(['identity', 'gzip;q=0', 'br'])('is not used with Accept-Encoding: %s', async (accepted) => {
      const { headers } = await plain(`${service.url}/permissions`, {
        ...key(),
        'Accept-Encoding': accepted,
      });
      expect(headers['content-encoding']).toBeUndefined();
    });

    it('is used neither for a short response nor for a stream', async () => {
      for (const path of ['/tenants/self', '/events']) {
        const { headers, body } = await plain(`${service.url}${path}`, {
          ...key(),
          'Accept-Encoding': 'gzip',
        });
        expect([path, headers['content-encoding']]).toEqual([path, undefined]);
        expect(body.toString()).toContain('{');
      }
    });

    it('leaves entity tags and HEAD unchanged', async () => {
      const head = await plain(`${service.url}/permissions`, { ...key(), 'Accept-Encoding': 'gzip' }, 'HEAD');
      expect([head.status, head.headers['content-encoding'], head.body.length]).toEqual([200, 'gzip', 0]);
    });
  });
});
