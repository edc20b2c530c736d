import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { beside } from '../../support/beside';
import { describeInBrowser, openTab } from '../../support/browser';
import { ask } from '../../support/http';
import { openPortal } from '../../support/portal';
import type { Service } from '../../support/service';

/** What the browser logs when it stops what such a page tries. */
const STOPPED = /Refused to|Framing '|has been blocked by CORS policy|^Failed to load resource:|violates/;

/** A form can only send text, but text that is JSON: the rest of the last name is the end of it. */
const formOf = (action: string, json: string): string => {
  const [name = '', value = ''] = json.replace(/\}$/, ',"x":"=').split('=');
  const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
  return `<form method="post" enctype="text/plain" action="${action}">
    <input name="${escaped(name)}" value="${escaped(`${value}"}`)}"><button>Go</button></form>`;
};

describeInBrowser('another site', () => {
  let service: Service;
  let server: Server;
  let victim: Page;
  let html = '';
  beforeAll(async () => {
    ({ service, page: victim } = await openPortal());
    server = createServer((_, response) => {
      response.setHeader('Content-Type', 'text/html');
      response.end(`<!doctype html><title>Elsewhere</title>${html}`);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterAll(() => void server.close());

  const SITES = [
    ['of another name', 'elsewhere.localhost'],
    ['on another port of the same address', '127.0.0.1'],
  ] as const;
  const openSite = async (host: string, content: string): Promise<Page> => {
    html = content;
    const page = await openTab(victim.context(), STOPPED);
    await page.goto(`http://${host}:${(server.address() as AddressInfo).port}/`);
    return page;
  };
  const nameOfTenant = async (): Promise<string> =>
    (await ask(`${service.url}/tenants/self`, { key: service.key })).json.name;
  const sessionCookies = async () =>
    (await victim.context().cookies()).filter(({ name }) => name.includes('portal'));

  it.each(SITES)('%s cannot show the portal in a frame', async (_, host) => {
    const page = await openSite(host, `<iframe src="${service.url}/portal"></iframe>`);
    const frame = page.frames()[1];
    await frame?.waitForLoadState().catch(() => undefined);
    expect(await frame?.locator('#app').count()).toBe(0);
    expect(frame?.url()).toMatch(/^chrome-error:/);
  });

  it.each(SITES)('%s cannot sign anybody in (login CSRF)', async (_, host) => {
    const before = await sessionCookies();
    const { key } = await (await beside(service)).newTenant('Of the attacker');
    const page = await openSite(host, formOf(`${service.url}/portal/session`, JSON.stringify({ key })));
    await page.getByRole('button', { name: 'Go' }).click();
    await page.waitForURL(`${service.url}/portal/session`);
    expect(await page.locator('body').innerText()).toContain('portal_refused');
    expect(await sessionCookies()).toEqual(before);
  });

  it.each(SITES)('%s cannot write or read with the session', async (_, host) => {
    const name = await nameOfTenant();
    const target = `${service.url}/portal/api/tenants/self`;
    const page = await openSite(host, '');
    const outcomes = await page.evaluate(async (url) => {
      const attempts: RequestInit[] = [
        { mode: 'no-cors', method: 'POST', body: '{"name":"stolen"}' },
        { method: 'PUT', body: '{"name":"stolen"}', headers: { 'Portal-Request': 'none' } },
        { method: 'GET' },
        { method: 'GET', headers: { 'Portal-Request': 'none' } },
      ];
      return Promise.all(
        attempts.map((attempt) =>
          fetch(url, { credentials: 'include', ...attempt }).then(
            () => 'answered',
            () => 'blocked',
          ),
        ),
      );
    }, target);
    expect(outcomes).toEqual(['blocked', 'blocked', 'blocked', 'blocked']);
    expect(await nameOfTenant()).toBe(name);
  });

  it.each(SITES)('%s cannot sign anybody out, or lead to what the API says', async (_, host) => {
    const page = await openSite(
      host,
      `${formOf(`${service.url}/portal/session`, '{}')}<a href="${service.url}/portal/api/tenants/self">Link</a>`,
    );
    await page.getByRole('link', { name: 'Link' }).click();
    await page.waitForURL(`${service.url}/portal/api/tenants/self`);
    expect(await page.locator('body').innerText()).toContain('portal_refused');
    await victim.reload();
    await victim.getByRole('navigation', { name: 'Pages' }).waitFor();
  });
});
