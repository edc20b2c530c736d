import { createHash } from 'node:crypto';
import { revokeKey } from '../../src/domain/application-keys';
import { beside } from '../support/beside';
import { plainRequest } from '../support/plain-request';
import { serviceForTests, startService } from '../support/service';
import { until } from '../support/waiting';

/** What the portal's own scripts send, and browsers add. */
const OWN = { 'Sec-Fetch-Site': 'same-origin', 'Portal-Request': 'none' };
const JSON_TYPE = { 'Content-Type': 'application/json' };

type Headers = Readonly<Record<string, string>>;

const send = (url: string, method: string, headers: Headers, body?: unknown): Promise<Response> =>
  fetch(url, {
    method,
    redirect: 'manual',
    headers: { ...headers, ...(body === undefined ? {} : JSON_TYPE) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });

const expectRefused = async (response: Response, status: number, code: string): Promise<void> => {
  expect(response.headers.get('content-disposition')).toBeNull();
  expect([response.status, await response.json()]).toMatchObject([status, { code }]);
};

const cookieIn = (response: Response): string =>
  (response.headers.get('set-cookie') ?? '').split(';')[0] ?? '';

describe('the session of the portal', () => {
  const service = serviceForTests();
  afterAll(async () => {
    expect(await service.stop()).toBe(0);
    expect(service.stderr()).not.toContain(service.key.slice(4));
  });

  const signIn = (headers: Headers = OWN, key = service.key) =>
    send(`${service.url}/portal/session`, 'POST', headers, { key });
  /** What people paste has white space around it. */
  const cookie = async () => cookieIn(await signIn(OWN, ` ${service.key}\n`));
  const signedIn = async (Cookie: string) => {
    const response = await send(`${service.url}/portal/session`, 'GET', { ...OWN, Cookie });
    return (await response.json()) as { readonly session?: string };
  };
  /** As a page of this session sends them. */
  const own = async (Cookie: string): Promise<Headers> => ({
    ...OWN,
    Cookie,
    'Portal-Request': (await signedIn(Cookie)).session ?? '',
  });
  const call = async (path: string, changed = (sent: Headers): Headers => sent, method = 'GET') =>
    send(`${service.url}${path}`, method, changed(await own(await cookie())));

  it('is a cookie that scripts and other sites cannot use, and that says nothing', async () => {
    const response = await signIn();
    expect(response.status).toBe(204);
    const set = response.headers.get('set-cookie') ?? '';
    expect(set).toMatch(/^portal-local=[A-Za-z0-9_-]+; Path=\/; HttpOnly; SameSite=Strict$/);
    expect(set).not.toContain(service.key.slice(4, 20));
    expect(response.headers.get('cache-control')).toBe('no-store');
  });

  it('calls the API below /portal/api, and nowhere else', async () => {
    const response = await call('/portal/api/tenants/self');
    expect(response.status).toBe(200);
    expect(response.headers.get('ratelimit-policy')).toBeNull();
    expect(((await response.json()) as { id: string }).id).toMatch(/^[0-9a-f-]{36}$/);
    await expectRefused(await call('/tenants/self'), 401, 'key_refused');
    await expectRefused(await call('/portal/api/nowhere'), 404, 'not_found');
  });

  it('ignores a key in a header', async () => {
    const headers = { ...OWN, 'SVC-API-KEY': service.key };
    const response = await send(`${service.url}/portal/api/tenants/self`, 'GET', headers);
    await expectRefused(response, 401, 'key_refused');
  });

  const without =
    (...names: readonly string[]) =>
    (sent: Headers): Headers =>
      Object.fromEntries(Object.entries(sent).filter(([name]) => !names.includes(name)));
  const from =
    (site: string) =>
    (sent: Headers): Headers => ({ ...sent, 'Sec-Fetch-Site': site });
  it.each([
    ['no header at all', without('Sec-Fetch-Site', 'Portal-Request')],
    ['a cookie that was stolen, without the header', without('Portal-Request')],
    ['a page of another site', from('cross-site')],
    ['a page of a sibling site', from('same-site')],
    ['a link that was followed', from('none')],
    ['a script that does not say where it comes from', without('Sec-Fetch-Site')],
  ])('refuses %s, to sign in and to call', async (_, changed) => {
    await expectRefused(await signIn(changed(OWN)), 403, 'portal_refused');
    await expectRefused(await call('/portal/api/tenants/self', changed), 403, 'portal_refused');
    await expectRefused(await call('/portal/session', changed, 'DELETE'), 403, 'portal_refused');
  });

  it('is not that of a page which was loaded with another key', async () => {
    const by = await beside(service);
    const other = await own(cookieIn(await signIn(OWN, (await by.newTenant()).key)));
    const changed = (sent: Headers): Headers => ({
      ...sent,
      'Portal-Request': other['Portal-Request'] ?? '',
    });
    await expectRefused(await call('/portal/api/tenants/self', changed), 403, 'portal_refused');
    expect((await call('/portal/api/tenants/self')).status).toBe(200);
  });

  it.each(['', 'key_', 'nonsense', `key_${'0'.repeat(55)}`])('refuses the key %j', async (key) => {
    const response = await signIn(OWN, key);
    expect(response.headers.get('set-cookie')).toBeNull();
    await expectRefused(response, 401, 'key_refused');
  });

  it('is refused if it was altered or is of another secret', async () => {
    const value = (await cookie()).slice('portal-local='.length);
    const swapped = `${value.slice(0, -2)}${value.endsWith('A') ? 'BB' : 'AA'}`;
    for (const forged of [swapped, value.slice(0, 20), '', 'x'])
      await expectRefused(
        await send(`${service.url}/portal/api/tenants/self`, 'GET', {
          ...OWN,
          Cookie: `portal-local=${forged}`,
        }),
        401,
        'key_refused',
      );
  });

  it('has a name that is the same for the same key and says nothing about it, and is signed out of', async () => {
    const [first, second] = [await signedIn(await cookie()), await signedIn(await cookie())];
    expect(first.session).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(second.session).toBe(first.session);
    expect(Buffer.from(first.session ?? '', 'base64url')).not.toEqual(
      createHash('sha256').update(service.key).digest(),
    );
    expect(await signedIn('')).toEqual({});
    const out = await call('/portal/session', undefined, 'DELETE');
    expect(out.headers.get('set-cookie')).toBe('portal-local=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0');
  });

  it('ends within a second when its key is revoked', async () => {
    const by = await beside(service);
    const { tenantId, key, keyId } = await by.newTenant();
    const Cookie = cookieIn(await signIn(OWN, key));
    const headers = await own(Cookie);
    const read = () => send(`${service.url}/portal/api/tenants/self`, 'GET', headers);
    expect((await read()).status).toBe(200);
    await by.write(tenantId, revokeKey(keyId));
    await until(async () => (await read()).status === 401, 1_000);
  });

  describe('a download', () => {
    const LINK = { 'Sec-Fetch-Site': 'same-origin' };
    const linkOf = async (Cookie: string, file = 'logs.csv'): Promise<string> =>
      `${service.url}/portal/download/${(await signedIn(Cookie)).session}/${file}`;

    it('is a link, with the filter in it, to GET and to ask for with HEAD', async () => {
      const Cookie = await cookie();
      const link = `${await linkOf(Cookie)}?entity_type=tenant`;
      const head = await send(link, 'HEAD', { ...LINK, Cookie });
      const response = await send(link, 'GET', { ...LINK, Cookie });
      for (const { status, headers } of [head, response])
        expect([status, headers.get('content-disposition')]).toEqual([
          200,
          'attachment; filename="logs.csv"',
        ]);
      // The header, the two rows of the demo, and the end.
      expect((await response.text()).split('\r\n')).toHaveLength(4);
    });

    it('of events has the trailer', async () => {
      const Cookie = await cookie();
      const response = await send(await linkOf(Cookie, 'events.ndjson'), 'GET', { ...LINK, Cookie });
      expect(await response.text()).toMatch(/\n\{"trailer":\{.*"sha256":"[0-9a-f]{64}".*\}\n$/);
    });

    it('that only asks leaves room for those that download', async () => {
      const Cookie = await cookie();
      const link = await linkOf(Cookie, 'events.ndjson');
      for (let i = 0; i < 9; i += 1) expect((await send(link, 'HEAD', { ...LINK, Cookie })).status).toBe(200);
    });

    it('needs the session that the link names, and a page of the portal', async () => {
      const Cookie = await cookie();
      const link = await linkOf(Cookie);
      const by = await beside(service);
      const other = cookieIn(await signIn(OWN, (await by.newTenant()).key));
      await expectRefused(await send(link, 'GET', LINK), 401, 'key_refused');
      await expectRefused(await send(link, 'GET', { ...LINK, Cookie: other }), 403, 'portal_refused');
      expect((await send(link, 'HEAD', { ...LINK, Cookie: other })).status).toBe(403);
      for (const site of ['cross-site', 'same-site', 'none'])
        await expectRefused(
          await send(link, 'GET', { Cookie, 'Sec-Fetch-Site': site }),
          403,
          'portal_refused',
        );
      await expectRefused(await send(link, 'GET', { Cookie }), 403, 'portal_refused');
    });

    it('that is refused is not saved as a file', async () => {
      const Cookie = await cookie();
      const link = `${await linkOf(Cookie)}?start_date=soon`;
      await expectRefused(await send(link, 'GET', { ...LINK, Cookie }), 400, 'validation_failed');
    });
  });

  describe('a page', () => {
    it('may load nothing but its own script, which never changes', async () => {
      const page = await fetch(`${service.url}/portal`);
      const html = await page.text();
      expect(page.headers.get('content-security-policy')).toBe(
        "default-src 'none'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
      );
      expect(html).not.toMatch(/<style|\bstyle=|\bon\w+=|<script(?![^>]* src="[^"]+"><\/script>)/);
      expect(page.headers.get('cache-control')).toBe('no-store');
      const paths = [...html.matchAll(/(?:href|src)="(?!data:)([^"]+)"/g)].map(([, path = '']) => path);
      expect(paths).toEqual([expect.stringMatching(/^\/portal\/files\/main-\w+\.js$/)]);
      const file = await fetch(`${service.url}${paths[0]}`);
      expect(file.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
      expect(file.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      const script = await file.text();
      for (const holder of ['Jason Miller', 'Preact Team'])
        expect(script).toMatch(new RegExp(`Copyright \\(c\\) \\d+-present ${holder}`));
    });

    it('says whose session it is to a browser that opens it, and to nobody else', async () => {
      const Cookie = await cookie();
      const toldTo = async (headers: Headers): Promise<unknown> => {
        const page = await send(`${service.url}/portal/logs`, 'GET', headers);
        expect([page.status, page.headers.get('cache-control')]).toEqual([200, 'no-store']);
        const [, told = ''] = /data-session="([^"]*)"/.exec(await page.text()) ?? [];
        return JSON.parse(told.replaceAll('&quot;', '"').replaceAll('&amp;', '&'));
      };
      const opened = { 'Sec-Fetch-Dest': 'document', Cookie };
      const { session } = await signedIn(Cookie);
      const found = { session, application: { name: 'Management' }, tenant_name: expect.any(String) };
      expect(await toldTo(opened)).toMatchObject(found);
      for (const headers of [
        { Cookie },
        { 'Sec-Fetch-Dest': 'iframe', Cookie },
        { 'Sec-Fetch-Dest': 'script', Cookie },
        { 'Sec-Fetch-Dest': 'document' },
        { 'Sec-Fetch-Dest': 'document', Cookie: 'portal-local=forged' },
      ])
        expect(await toldTo(headers)).toEqual({});
    });

    it('says nothing of a session whose key was revoked, nor the name of a Tenant that the key may not see', async () => {
      const by = await beside(service);
      const { tenantId } = await by.newTenant('"Q" & <b>');
      const { key, keyId } = await by.newApplication(tenantId, 'management', 'log:read');
      const Cookie = cookieIn(await signIn(OWN, key));
      const open = async () =>
        (await send(`${service.url}/portal`, 'GET', { 'Sec-Fetch-Dest': 'document', Cookie })).text();
      expect(await open()).toContain('&quot;session&quot;');
      expect(await open()).not.toContain('tenant_name');
      await by.write(tenantId, revokeKey(keyId));
      await until(async () => (await open()).includes('data-session="{}"'), 1_000);
    });

    it.each(['/portal/', '/portal/logs?entity_type=token', '/portal/tenant', '/portal/nowhere/at-all'])(
      'is at %s',
      async (path) => {
        expect((await fetch(`${service.url}${path}`)).headers.get('content-type')).toBe(
          'text/html; charset=utf-8',
        );
      },
    );

    it.each(['/portal/files/main.js', '/portalx'])('is not at %s', async (path) => {
      await expectRefused(await fetch(`${service.url}${path}`), 404, 'not_found');
    });
  });
});

const raw = async (url: string, headers: Headers, key: string) => {
  const all = { ...JSON_TYPE, ...OWN, ...headers };
  const response = await plainRequest(`${url}/portal/session`, all, 'POST', JSON.stringify({ key }));
  return { ...response, cookie: response.headers['set-cookie']?.[0] ?? '' };
};

describe('signing in to the portal', () => {
  it('is refused over plain HTTP to another host', async () => {
    const service = await startService();
    for (const Host of ['example.com', '10.0.0.1:8080', '127.0.0.1.example.com']) {
      const { status, text } = await raw(service.url, { Host }, service.key);
      expect([Host, status, text]).toEqual([Host, 403, expect.stringContaining('plain HTTP')]);
    }
  });

  it('is refused over plain HTTP behind a proxy', async () => {
    const service = await startService({ TRUSTED_PROXIES: '1' });
    expect((await raw(service.url, {}, service.key)).status).toBe(403);
  });

  it('sets a cookie for TLS only behind TLS', async () => {
    const service = await startService({ PUBLIC_URL: 'https://ledger.example.com', TRUSTED_PROXIES: '1' });
    const { status, cookie } = await raw(service.url, { Host: 'ledger.example.com' }, service.key);
    expect(status).toBe(204);
    expect(cookie).toMatch(/^__Host-portal=[A-Za-z0-9_-]+; Path=\/; Secure; HttpOnly; SameSite=Strict$/);
  });

  it('with a revoked key, or asking for a download with it, is recorded for its tenant', async () => {
    const service = await startService();
    const by = await beside(service);
    const { tenantId, key, keyId } = await by.newTenant();
    const { cookie } = await raw(service.url, {}, key);
    const headers = { ...OWN, Cookie: cookie.split(';')[0] ?? '' };
    const found = await send(`${service.url}/portal/session`, 'GET', headers);
    const { session } = (await found.json()) as { readonly session: string };
    const own = { ...headers, 'Portal-Request': session };
    await by.write(tenantId, revokeKey(keyId));
    expect((await raw(service.url, {}, key)).status).toBe(401);
    const link = `${service.url}/portal/download/${own['Portal-Request']}/logs.csv`;
    expect((await send(link, 'GET', headers)).status).toBe(401);
    await service.stop();
    const refused = (await by.events()).filter(({ type }) => type === 'KeyUsed');
    expect(refused.map(({ data }) => data)).toEqual([
      expect.objectContaining({ keyId, operations: { getOwnApplication: 1 }, refusals: { revoked: 2 } }),
    ]);
  });

  it('is limited as the specification says, instead of the global limit', async () => {
    const service = await startService({ RATE_LIMITS: '' });
    const response = await fetch(`${service.url}/portal`);
    expect(response.headers.get('ratelimit-policy')).toBe('"portal";q=600;w=10');
    expect((await fetch(`${service.url}/docs`)).headers.get('ratelimit')).toMatch(/^"global";r=999;/);
  });

  it('is not there if the portal is switched off', async () => {
    const service = await startService({ PORTAL: 'false' });
    for (const path of ['/portal', '/portal/session', '/portal/api/tenants/self'])
      await expectRefused(await send(`${service.url}${path}`, 'GET', OWN), 404, 'not_found');
  });
});
