import type { Browser, Page } from 'playwright-core';
import { pause } from '../../../src/async/clock';
import type { Beside } from '../../support/beside';
import {
  accessibilityFaults,
  describeInBrowser,
  FAILED_REQUESTS,
  openWindow,
  signInTo,
} from '../../support/browser';
import { ask } from '../../support/http';
import { openPortal } from '../../support/portal';
import type { Service } from '../../support/service';
import { until } from '../../support/waiting';

describeInBrowser('the pages of the portal', () => {
  let browser: Browser;
  let service: Service;
  let by: Beside;
  let page: Page;
  beforeAll(async () => {
    ({ browser, service, by, page } = await openPortal({ expected: FAILED_REQUESTS }));
  });

  const open = (name: string) => page.goto(`${service.url}/portal/${name}`);
  const dialog = () => page.getByRole('dialog');
  const button = (name: string | RegExp) => page.getByRole('button', { name });
  const keep = async (): Promise<void> => {
    await dialog().getByLabel('I have kept the key').check();
    await dialog().getByRole('button', { name: 'Close' }).click();
  };

  it('create an Application and show its key once', async () => {
    await open('applications');
    await button('New Application …').click();
    await dialog().getByLabel('Name', { exact: true }).fill('<b>Shop</b>');
    await dialog().getByLabel('Type').selectOption('private');
    await dialog().getByLabel('token:create').check();
    await dialog().getByRole('button', { name: 'Create' }).click();
    const key = (await page.locator('pre.key').innerText()).trim();
    expect(key).toMatch(/^key_[0-9A-Za-z]{55}$/);
    await keep();
    await page.getByRole('heading', { name: '<b>Shop</b>' }).waitFor();
    await until(async () => (await page.evaluate('document.activeElement.innerText')) === '<b>Shop</b>');
    expect(await page.content()).not.toContain(key);
    expect((await ask(`${service.url}/applications/key`, { key })).json.permissions).toEqual([
      'token:create',
    ]);
    await open('applications');
    await page.getByRole('link', { name: '<b>Shop</b>' }).click();
    await page.getByRole('heading', { name: '<b>Shop</b>' }).waitFor();
  });

  it('edit it, add and revoke keys, and delete it', async () => {
    await button('Edit …').click();
    await dialog().getByLabel('Name').fill('Shop 2');
    await dialog().getByLabel('token:read').check();
    await dialog().getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { name: 'Shop 2' }).waitFor();
    await button('New key …').click();
    await dialog().getByLabel('Name').fill('nightly');
    await dialog()
      .getByLabel(/Expires/)
      .fill('2099-01-01T00:00');
    await dialog().getByRole('button', { name: 'Create' }).click();
    await page.locator('pre.key').waitFor();
    await keep();
    const row = page.getByRole('row', { name: /nightly/ });
    await row.getByRole('button', { name: 'Uses' }).click();
    await dialog().getByText('Not used in the last 30 days.').waitFor();
    await dialog().getByRole('button', { name: 'Close' }).click();
    await row.getByRole('button', { name: 'Revoke …' }).click();
    expect(await dialog().innerText()).toMatch(
      /nightly .*, last used: never. It is refused from now on, for good/,
    );
    await dialog().getByRole('button', { name: 'Close' }).click();
    await row.getByRole('button', { name: 'Revoke …' }).click();
    await dialog().getByRole('button', { name: 'Revoke the key' }).click();
    await row.waitFor({ state: 'detached' });
    await button('Delete …').click();
    await dialog().getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'Applications' }).waitFor();
    await page.getByRole('link', { name: 'Shop 2' }).waitFor({ state: 'detached' });
  });

  it('create one key or Application, however often the button is clicked', async () => {
    const { id } = await by.newApplication(await by.tenantId(), 'public', 'token:create');
    const sent: string[] = [];
    let clicked: Promise<void>;
    await page.route('**/portal/api/applications**', async (route) => {
      if (route.request().method() === 'POST') {
        sent.push(new URL(route.request().url()).pathname.replace('/portal/api/applications', ''));
        await clicked;
      }
      await route.continue();
    });
    const clickTwice = async (name: string): Promise<void> => {
      clicked = dialog().getByRole('button', { name }).dblclick();
      await clicked;
      await page.locator('pre.key').waitFor();
      await keep();
      await dialog().waitFor({ state: 'detached' });
    };
    await open(`applications?id=${id}`);
    await button('New key …').click();
    await clickTwice('Create');
    await open('applications');
    await button('New Application …').click();
    await dialog().getByLabel('Name', { exact: true }).fill('Twice');
    await clickTwice('Create');
    await page.unrouteAll();
    expect(sent).toEqual([`/${id}/keys`, '']);
  });

  it('create no key that never expires instead of one whose expiry cannot be read', async () => {
    const { id } = await by.newApplication(await by.tenantId(), 'public', 'token:create');
    await open(`applications?id=${id}`);
    await button('New key …').click();
    await dialog()
      .getByLabel(/Expires/)
      .fill('20270-01-01T00:00');
    await dialog().getByRole('button', { name: 'Create' }).click();
    await dialog().locator('input:invalid').waitFor();
    const { json } = await ask(`${service.url}/applications/${id}`, { key: service.key });
    expect(json.keys).toHaveLength(1);
  });

  it('do not lose a new key to Enter or Escape', async () => {
    const { id } = await by.newApplication(await by.tenantId(), 'public', 'token:create');
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await open(`applications?id=${id}`);
    await button('New key …').click();
    await dialog().getByLabel('Name').press('Enter');
    const key = await page.locator('pre.key').innerText();
    for (let i = 0; i < 3; i += 1) {
      await page.keyboard.press('Escape');
      await pause(50);
      expect(await page.locator('pre.key').isVisible()).toBe(true);
    }
    await page.getByRole('button', { name: 'Copy the key' }).focus();
    await page.keyboard.press('Enter');
    await until(async () => (await page.evaluate('navigator.clipboard.readText()')) === key);
    await page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'detached' });
  });

  it('have the focus on Copy when a new key is shown', async () => {
    const { id } = await by.newApplication(await by.tenantId(), 'public', 'token:create');
    await open(`applications?id=${id}`);
    await button('New key …').click();
    await dialog().getByRole('button', { name: 'Create' }).click();
    await page.locator('pre.key').waitFor();
    expect(await page.evaluate('document.activeElement.innerText')).toBe('Copy the key');
    await keep();
  });

  it('ask before they end or restrict the access that they use', async () => {
    const permissions = ['application:read', 'application:update', 'application:delete'] as const;
    const { id, key } = await by.newApplication(await by.tenantId(), 'management', ...permissions);
    const other = await openWindow(browser, FAILED_REQUESTS);
    await signInTo(other, service.url, key);
    await other.goto(`${service.url}/portal/applications?id=${id}`);
    const form = other.getByRole('dialog');
    other.on('dialog', (question) => void question.accept());
    const tryTo = async (opener: string, sender: string): Promise<void> => {
      await form.getByText(/^You are signed in with/).waitFor();
      await form.getByRole('button', { name: sender }).click();
      expect([opener, await form.count()]).toEqual([opener, 1]);
      await form.getByRole('button', { name: 'Close' }).click();
      await form.waitFor({ state: 'detached' });
    };
    const opens = (name: string) => other.getByRole('button', { name, exact: true }).click();
    await opens('Revoke …');
    await tryTo('Revoke …', 'Revoke the key');
    await opens('Edit …');
    await form.getByLabel('application:delete').uncheck();
    await tryTo('Edit …', 'Save');
    await opens('Delete …');
    await tryTo('Delete …', 'Delete');
    const { json } = await ask(`${service.url}/applications/key`, { key });
    expect([json.permissions, json.keys.length]).toEqual([permissions, 1]);
    await opens('Delete …');
    await form.getByLabel(/^You are signed in with/).check();
    await form.getByRole('button', { name: 'Delete' }).click();
    await other.getByText('Your session has ended').waitFor();
  });

  const putTenant = async (body: object): Promise<void> => {
    const put = { method: 'PUT', key: service.key, body };
    expect((await ask(`${service.url}/tenants/self`, put)).status).toBe(200);
  };

  it('save the Tenant once, and merge what others have changed meanwhile', async () => {
    await open('tenant');
    await page.getByLabel('Name').fill('Mine');
    let puts = 0;
    await page.route('**/portal/api/tenants/self', async (route) => {
      if (route.request().method() === 'PUT') {
        puts += 1;
        await pause(100);
      }
      await route.continue();
    });
    await button('Save').dblclick();
    await page.getByText('Saved.').waitFor();
    await page.unrouteAll({ behavior: 'wait' });
    expect(puts).toBe(1);
    expect(await page.getByRole('banner').innerText()).toContain('Mine');
    expect(await page.title()).toBe('Tenant · Mine');
    await putTenant({ name: 'Mine', settings: { deduplicate_tokens: 'true' } });
    await page.getByLabel('Name').fill('Mine again');
    await button('Save').click();
    const changed = page.getByRole('region', { name: 'Changed meanwhile' });
    await changed.getByText(/^Changed meanwhile by Management, /).waitFor();
    await changed.getByRole('row', { name: 'Name Mine Mine Mine again Mine again' }).waitFor();
    await changed.getByRole('row', { name: 'Deduplicate tokens no yes no yes' }).waitFor();
    await page.getByRole('alert').filter({ hasText: 'Nothing was saved' }).waitFor();
    await putTenant({ name: 'Theirs' });
    await button('Save').click();
    await changed.getByRole('row', { name: 'Name Mine Theirs Mine again Mine again' }).waitFor();
    await button('Save').click();
    await page.getByText('Saved.').waitFor();
    expect((await ask(`${service.url}/tenants/self`, { key: service.key })).json).toMatchObject({
      name: 'Mine again',
      settings: { deduplicate_tokens: 'true' },
    });
  });

  it('say that a change appears in a moment if reads do not show it yet, and look again', async () => {
    const { id } = await by.newApplication(await by.tenantId(), 'private', 'token:read');
    const pending = page.getByRole('status').filter({ hasText: 'Saved; it appears in a moment.' });
    await page.route(`**/portal/api/applications/${id}`, async (route) => {
      const request = route.request();
      // Fetched by Playwright, a request has lost what a browser says about where it comes from.
      const headers = { ...(await request.allHeaders()), 'sec-fetch-site': 'same-origin' };
      const response = await route.fetch({ headers });
      if (request.method() === 'PUT')
        return route.fulfill({ response, headers: { ...response.headers(), 'svc-read-pending': 'true' } });
      if (!(await pending.isVisible())) return route.fulfill({ response });
      return route.fulfill({ response, json: { ...(await response.json()), name: 'As before' } });
    });
    await open(`applications?id=${id}`);
    await button('Edit …').click();
    await dialog().getByLabel('Name').fill('Saved');
    await dialog().getByRole('button', { name: 'Save' }).click();
    await pending.waitFor();
    await page.getByRole('heading', { name: 'As before' }).waitFor();
    await page.getByRole('heading', { name: 'Saved' }).waitFor();
    expect(await pending.count()).toBe(0);
    await page.unrouteAll({ behavior: 'wait' });
  });

  it('merge an Application, and do not mind a key that was added', async () => {
    const { id } = await by.newApplication(await by.tenantId(), 'private', 'token:read');
    const url = `${service.url}/applications/${id}`;
    const change = async (path: string, method: string, body: object): Promise<void> => {
      expect((await ask(`${url}${path}`, { method, key: service.key, body })).status).toBeLessThan(300);
    };
    const stored = async () => (await ask(url, { key: service.key })).json;
    await open(`applications?id=${id}`);
    await button('Edit …').click();
    await dialog().getByLabel('token:create').check();
    await change('/keys', 'POST', { name: 'meanwhile' });
    await dialog().getByRole('button', { name: 'Save' }).click();
    await dialog().waitFor({ state: 'detached' });
    expect((await stored()).permissions).toEqual(['token:read', 'token:create']);
    await button('Edit …').click();
    await dialog().getByLabel('token:read').uncheck();
    await change('', 'PUT', { name: 'Renamed', permissions: ['token:read', 'token:create', 'token:use'] });
    await dialog().getByRole('button', { name: 'Save' }).click();
    await dialog().getByRole('row', { name: 'token:read held held none none' }).waitFor();
    await dialog().getByRole('row', { name: 'Name A private one Renamed A private one Renamed' }).waitFor();
    await dialog().getByRole('button', { name: 'Save' }).click();
    await dialog().waitFor({ state: 'detached' });
    expect(await stored()).toMatchObject({ name: 'Renamed', permissions: ['token:create', 'token:use'] });
    await putTenant({ name: 'Mine again', settings: { deduplicate_tokens: 'false' } });
  });

  it('keep what somebody types through an outage, and say that they try again', async () => {
    await open('tenant');
    await page.getByLabel('Name').fill('Typed in an outage');
    await page.route('**/portal/api/**', (route) => route.abort());
    await button('Save').click();
    await page.getByRole('alert').filter({ hasText: 'The service cannot be reached.' }).waitFor();
    expect(await page.getByLabel('Name').inputValue()).toBe('Typed in an outage');
    await page.getByRole('status').filter({ hasText: 'cannot be reached. Trying again' }).waitFor();
    page.once('dialog', (question) => void question.accept());
    await page.getByRole('link', { name: 'Applications' }).click();
    await page.getByRole('status').filter({ hasText: 'cannot be reached. Trying again' }).waitFor();
    await page.unrouteAll();
    await page.getByRole('link', { name: 'Management' }).waitFor();
    expect(await page.getByText('Trying again').count()).toBe(0);
    // Fetched by Playwright, the page does not say whose session it is, so its script asks.
    await page.route('**/portal/applications', async (route) =>
      route.fulfill({ response: await route.fetch() }),
    );
    await page.route('**/portal/session', (route) => route.abort());
    await page.reload();
    await page.getByText('Trying again').waitFor();
    await page.unrouteAll();
    await page.getByRole('link', { name: 'Management' }).waitFor();
  });

  it('show the Tenant and its Applications as they were, and what differs from now', async () => {
    const { id } = await by.newApplication(await by.tenantId(), 'private', 'token:read', 'token:use');
    const then = new Date().toISOString();
    await until(() => new Date().toISOString() > then);
    const url = `${service.url}/applications/${id}`;
    const body = { name: 'Renamed since', permissions: ['token:read', 'token:create'] };
    expect((await ask(url, { method: 'PUT', key: service.key, body })).status).toBe(200);
    await putTenant({ name: 'Renamed, too' });
    await open(`tenant?as_of=${then}`);
    await page.getByRole('row', { name: 'Name Mine again Renamed, too' }).waitFor();
    await page.getByRole('row', { name: 'Fingerprint tokens yes same' }).waitFor();
    await open(`applications?as_of=${then}`);
    const row = page.getByRole('row', { name: /^A private one private token:read ?token:use [0-9a-f]{8}…/ });
    const differs = /renamed to Renamed since; gained token:create; lost token:use$/;
    await until(async () => differs.test(await row.innerText()));
    await button('Now').click();
    await page.getByRole('link', { name: 'Renamed since' }).waitFor();
    await page.getByLabel(/^As of/).fill('2026-01-31T12:00');
    await page.keyboard.press('Enter');
    await page.waitForURL(({ search }) => search.startsWith('?as_of=2026-01-'));
    await page.getByText('There were none.').or(page.getByRole('alert')).waitFor();
  });

  it('are at every address below the portal, and say which there is not', async () => {
    await open('nowhere');
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor();
    await page.getByRole('link', { name: 'Go to its first page.' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });

  it('show the usage', async () => {
    await open('usage');
    await page.getByRole('row', { name: /^token / }).waitFor();
  });

  it.each(['light', 'dark'] as const)(
    'have nothing that axe-core objects to in %s mode',
    async (colorScheme) => {
      await page.emulateMedia({ colorScheme });
      for (const [name, heading] of [
        ['', 'Last changes'],
        ['applications', 'Applications'],
        ['tenant', 'Tenant'],
        ['usage', 'Usage'],
        [`tenant?as_of=${new Date().toISOString()}`, 'Tenant'],
        [`applications?as_of=${new Date().toISOString()}`, 'Applications'],
        ['nowhere', 'There is no such page'],
      ] as const) {
        await open(name);
        await page.getByRole('heading', { name: heading, exact: true }).waitFor();
        for (const width of [390, 900, 1400]) {
          await page.setViewportSize({ width, height: 800 });
          expect([name, width, await accessibilityFaults(page)]).toEqual([name, width, []]);
        }
      }
    },
  );

  it.each(['light', 'dark'] as const)(
    'have dialogs that axe-core does not object to in %s mode',
    async (colorScheme) => {
      await page.emulateMedia({ colorScheme });
      const expectNoFaults = async (name: string): Promise<void> => {
        await dialog().waitFor();
        expect([name, await accessibilityFaults(page)]).toEqual([name, []]);
      };
      const check = async (name: string): Promise<void> => {
        await page.getByRole('button', { name, exact: true }).first().click();
        await expectNoFaults(name);
        await page.keyboard.press('Escape');
        await dialog().waitFor({ state: 'detached' });
      };
      await open('applications');
      await check('New Application …');
      await page.getByRole('link', { name: 'Management' }).click();
      await button('Uses').first().waitFor();
      for (const name of ['Edit …', 'Delete …', 'Uses', 'Revoke …']) await check(name);
      await button('New key …').click();
      await expectNoFaults('New key …');
      await dialog().getByRole('button', { name: 'Create' }).click();
      await page.locator('pre.key').waitFor();
      await expectNoFaults('The new key');
      await open('tenant');
      await button('Delete the Tenant …').waitFor();
      await check('Delete the Tenant …');
    },
  );

  it('stay signed in if signing out fails, and say so', async () => {
    const other = await openWindow(browser, FAILED_REQUESTS);
    await signInTo(other, service.url, service.key);
    const signOut = () => other.getByRole('button', { name: 'Sign out' }).click();
    await other.route('**/portal/session', (route) => route.abort());
    await signOut();
    await other.getByText('You are still signed in: The service cannot be reached.').waitFor();
    await other.unrouteAll();
    const busy = { status: 429, code: 'rate_limited', title: 'Too many.' };
    await other.route('**/portal/session', (route) => route.fulfill({ status: 429, json: busy }));
    await signOut();
    await other.getByText('You are still signed in: Too many.').waitFor();
    expect(await accessibilityFaults(other)).toEqual([]);
    await other.unrouteAll();
    await signOut();
    await other.getByLabel('API key').waitFor();
  });

  it('begin with one that the key may see, and say which permission is missing', async () => {
    const { key } = await by.newApplication(await by.tenantId(), 'management', 'report:read');
    const other = await openWindow(browser);
    await signInTo(other, service.url, key);
    await other.getByRole('heading', { name: 'Active tokens this month' }).waitFor();
    expect(await other.getByRole('link', { name: 'Log' }).getAttribute('title')).toContain('log:read');
    for (const [name, permission] of [
      ['logs', 'log:read'],
      ['applications', 'application:read'],
      ['tenant', 'tenant:read'],
    ] as const) {
      await other.goto(`${service.url}/portal/${name}`);
      await other.getByText(permission, { exact: true }).waitFor();
    }
  });

  it('delete the Tenant after its name is typed', async () => {
    const { tenantId } = await by.newTenant('Doomed');
    const { key } = await by.newApplication(tenantId, 'management', 'tenant:read', 'tenant:delete');
    const other = await openWindow(browser);
    await signInTo(other, service.url, key);
    await other.goto(`${service.url}/portal/tenant`);
    await other.getByRole('button', { name: 'Delete the Tenant …' }).click();
    const confirm = other.getByRole('dialog').getByRole('button', { name: 'Delete' });
    expect(await confirm.isDisabled()).toBe(true);
    await other.getByLabel('Name of the Tenant').fill('Doomed');
    await confirm.click();
    await other.getByText('The Tenant was deleted').waitFor();
    await until(async () => (await ask(`${service.url}/tenants/self`, { key })).status === 401);
  });
});
