import type { Browser, Page } from 'playwright-core';
import { pause } from '../../../src/async/clock';
import { beside, type Beside } from '../../support/beside';
import {
  accessibilityFaults,
  describeInBrowser,
  FAILED_REQUESTS,
  launch,
  openWindow,
  signInTo,
} from '../../support/browser';
import { ask } from '../../support/http';
import { startService, type Service } from '../../support/service';
import { until } from '../../support/waiting';

describeInBrowser('the pages of the portal', () => {
  let browser: Browser;
  let service: Service;
  let by: Beside;
  let page: Page;
  beforeAll(async () => {
    [browser, service] = await Promise.all([launch(), startService()]);
    by = await beside(service);
    page = await openWindow(browser, FAILED_REQUESTS);
    await signInTo(page, service.url, service.key);
  });
  afterAll(async () => {
    await browser.close();
    await service.stop();
  });

  const open = (name: string) => page.goto(`${service.url}/portal/${name}`);
  const dialog = () => page.getByRole('dialog');
  const button = (name: string | RegExp) => page.getByRole('button', { name });

  it('create an Application and show its key once', async () => {
    await open('applications');
    await button('New Application …').click();
    await dialog().getByLabel('Name').fill('<b>Shop</b>');
    await dialog().getByLabel('Type').selectOption('private');
    await dialog().getByLabel('token:create').check();
    await dialog().getByRole('button', { name: 'Create' }).click();
    const key = (await page.locator('pre.key').innerText()).trim();
    expect(key).toMatch(/^key_[0-9A-Za-z]{55}$/);
    await dialog().getByRole('button', { name: 'Close' }).click();
    await page.getByRole('heading', { name: '<b>Shop</b>' }).waitFor();
    expect(await page.content()).not.toContain(key);
    expect((await ask(`${service.url}/applications/key`, { key })).json.permissions).toEqual([
      'token:create',
    ]);
    await open('applications');
    await page.getByRole('link', { name: '<b>Shop</b>' }).click();
    await page.getByRole('heading', { name: '<b>Shop</b>' }).waitFor();
  });

  it('edit it, add, regenerate and delete keys, and delete it', async () => {
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
    await dialog().getByRole('button', { name: 'Close' }).click();
    const row = page.getByRole('row', { name: /nightly/ });
    await row.getByRole('button', { name: 'Uses' }).click();
    await dialog().getByText('Not used in the last 30 days.').waitFor();
    await dialog().getByRole('button', { name: 'Close' }).click();
    await row.getByRole('button', { name: 'Delete' }).click();
    await row.waitFor({ state: 'detached' });
    await button('Regenerate …').click();
    await dialog().getByRole('button', { name: 'Regenerate' }).click();
    await page.locator('pre.key').waitFor();
    await dialog().getByRole('button', { name: 'Close' }).click();
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
      await dialog().getByRole('button', { name: 'Close' }).click();
      await dialog().waitFor({ state: 'detached' });
    };
    await open(`applications?id=${id}`);
    await button('New key …').click();
    await clickTwice('Create');
    await button('Regenerate …').click();
    await clickTwice('Regenerate');
    await open('applications');
    await button('New Application …').click();
    await dialog().getByLabel('Name').fill('Twice');
    await clickTwice('Create');
    await page.unrouteAll();
    expect(sent).toEqual([`/${id}/keys`, `/${id}/regenerate`, '']);
  });

  it('create no key that never expires instead of one whose expiry cannot be read', async () => {
    const { id } = await by.newApplication(await by.tenantId(), 'public', 'token:create');
    await open(`applications?id=${id}`);
    await button('New key …').click();
    await dialog()
      .getByLabel(/Expires/)
      .fill('20270-01-01T00:00');
    await dialog().getByRole('button', { name: 'Create' }).click();
    await dialog().getByRole('alert').filter({ hasText: '20270' }).waitFor();
    const { json } = await ask(`${service.url}/applications/${id}`, { key: service.key });
    expect(json.keys).toHaveLength(1);
  });

  it('ask before they end or restrict the access that they use', async () => {
    const permissions = ['application:read', 'application:update', 'application:delete'] as const;
    const { id, key } = await by.newApplication(await by.tenantId(), 'management', ...permissions);
    const other = await openWindow(browser, FAILED_REQUESTS);
    const asked: string[] = [];
    let agrees = false;
    other.on('dialog', (question) => {
      asked.push(question.message());
      void (agrees ? question.accept() : question.dismiss());
    });
    await signInTo(other, service.url, key);
    await other.goto(`${service.url}/portal/applications?id=${id}`);
    const form = other.getByRole('dialog');
    const close = () => form.getByRole('button', { name: 'Close' }).click();
    await other.getByRole('button', { name: 'Delete', exact: true }).click();
    await other.getByRole('button', { name: 'Regenerate …' }).click();
    await form.getByRole('button', { name: 'Regenerate' }).click();
    await close();
    await other.getByRole('button', { name: 'Edit …' }).click();
    await form.getByLabel('application:delete').uncheck();
    await form.getByRole('button', { name: 'Save' }).click();
    await close();
    await other.getByRole('button', { name: 'Delete …' }).click();
    await form.getByRole('button', { name: 'Delete' }).click();
    expect(asked).toHaveLength(4);
    const { json } = await ask(`${service.url}/applications/key`, { key });
    expect([json.permissions, json.keys.length]).toEqual([permissions, 1]);
    agrees = true;
    await form.getByRole('button', { name: 'Delete' }).click();
    await other.getByText('Your session has ended').waitFor();
  });

  it('save the Tenant, and show both versions of a conflict', async () => {
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
    const put = { method: 'PUT', key: service.key, body: { name: 'Theirs' } };
    expect((await ask(`${service.url}/tenants/self`, put)).status).toBe(200);
    await page.getByLabel('Name').fill('Mine again');
    await button('Save').click();
    await page.getByRole('heading', { name: /Somebody else/ }).waitFor();
    expect(await page.getByRole('row', { name: /Name Theirs Mine again/ }).count()).toBe(1);
    await button('Save yours over it').click();
    await page.getByText('Saved.').waitFor();
    expect((await ask(`${service.url}/tenants/self`, { key: service.key })).json.name).toBe('Mine again');
  });

  it('say that the Tenant was not saved if the other version of a conflict cannot be loaded', async () => {
    await open('tenant');
    await page.getByLabel('Name').fill('Not saved');
    const put = { method: 'PUT', key: service.key, body: { name: 'Mine again' } };
    expect((await ask(`${service.url}/tenants/self`, put)).status).toBe(200);
    await page.route('**/portal/api/tenants/self', (route) =>
      route.request().method() === 'GET' ? route.abort() : route.continue(),
    );
    await button('Save').click();
    await page.getByRole('alert').filter({ hasText: 'The service cannot be reached.' }).waitFor();
    await page.unrouteAll();
    expect((await ask(`${service.url}/tenants/self`, { key: service.key })).json.name).toBe('Mine again');
  });

  it('show the Tenant, its Applications and who could do what, as it was', async () => {
    const { id: applicationId } = await by.newApplication(
      await by.tenantId(),
      'private',
      'token:read',
      'token:use',
    );
    const then = new Date().toISOString();
    await until(() => new Date().toISOString() > then);
    const url = `${service.url}/applications/${applicationId}`;
    const headers = {
      method: 'PUT',
      key: service.key,
      body: { name: 'Renamed', permissions: ['token:create'] },
    };
    expect((await ask(url, headers)).status).toBe(200);
    const put = { method: 'PUT', key: service.key, body: { name: 'Renamed, too' } };
    expect((await ask(`${service.url}/tenants/self`, put)).status).toBe(200);
    const past = page.getByRole('list', { name: 'Applications at that moment' });
    await page.goto(`${service.url}/portal/then?as_of=${then}`);
    await page.getByText('Mine again').waitFor();
    expect(await past.getByRole('listitem').filter({ hasText: 'A private one' }).innerText()).toMatch(
      /private\s+Keys that worked: [0-9a-f]{8}…\s+token:read\s*token:use/,
    );
    await page.getByText('token:use', { exact: true }).last().waitFor();
    const who = page.locator('dl.facts > div', { hasText: 'token:use' });
    expect(await who.innerText()).toContain('A private one');
    await page.goto(`${service.url}/portal/then?as_of=${new Date().toISOString()}`);
    await page.getByText('Renamed, too').waitFor();
    expect(await past.getByRole('listitem').filter({ hasText: 'Renamed' }).innerText()).toContain(
      'token:create',
    );
    expect(await page.locator('dl.facts > div', { hasText: 'token:use' }).count()).toBe(0);
  });

  it('show the usage', async () => {
    await open('usage');
    await page.getByRole('row', { name: /^token/ }).waitFor();
  });

  it.each(['light', 'dark'] as const)(
    'have nothing that axe-core objects to in %s mode',
    async (colorScheme) => {
      await page.emulateMedia({ colorScheme });
      for (const [name, heading] of [
        ['applications', 'Applications'],
        ['tenant', 'Tenant'],
        ['usage', 'Usage'],
        ['then', 'Then'],
        [`then?as_of=${new Date().toISOString()}`, 'Who could do what'],
      ] as const) {
        await open(name);
        await page.getByRole('heading', { name: heading, exact: true }).waitFor();
        for (const width of [360, 1280]) {
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
        await button(name).first().click();
        await expectNoFaults(name);
        await page.keyboard.press('Escape');
        await dialog().waitFor({ state: 'detached' });
      };
      await open('applications');
      await check('New Application …');
      await page.getByRole('link', { name: 'Management' }).click();
      await button('Uses').first().waitFor();
      for (const name of ['Edit …', 'Delete …', 'Regenerate …', 'Uses']) await check(name);
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

  it('say which permission is missing', async () => {
    const { key } = await by.newApplication(await by.tenantId(), 'management', 'report:read');
    const other = await openWindow(browser);
    await signInTo(other, service.url, key);
    for (const [name, permission] of [
      ['logs', 'log:read'],
      ['applications', 'application:read'],
      ['tenant', 'tenant:read'],
      ['then', 'log:read'],
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
