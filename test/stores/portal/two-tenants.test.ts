import type { Browser, Page } from 'playwright-core';
import type { Beside } from '../../support/beside';
import { describeInBrowser, FAILED_REQUESTS, openTab, openWindow, signInTo } from '../../support/browser';
import { ask } from '../../support/http';
import { startPortal } from '../../support/portal';
import { fact, reportFacts } from '../../support/reported-facts';
import { allProjected, type Service } from '../../support/service';
import { until } from '../../support/waiting';

const PERMISSIONS = ['tenant:read', 'tenant:update', 'log:read'];

describeInBrowser('two tenants', () => {
  let browser: Browser;
  let service: Service;
  let by: Beside;
  beforeAll(async () => {
    ({ browser, service, by } = await startPortal());
  });

  const newTenant = async (name: string): Promise<string> => {
    const { tenantId } = await by.newTenant(name);
    return (await by.newApplication(tenantId, 'management', ...PERMISSIONS)).key;
  };
  const nameIn = (page: Page) => page.getByLabel('Name').inputValue();
  /** Going on before the answer is there would cancel the request. */
  const signInHere = async (page: Page, key: string): Promise<void> => {
    await page.getByLabel('API key').fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
  };
  const openTenant = async (page: Page): Promise<void> => {
    await page.goto(`${service.url}/portal/tenant`);
    await page.getByLabel('Name').waitFor();
  };

  it('in two browsers have nothing to do with each other', async () => {
    const [one, two] = [await openWindow(browser), await openWindow(browser)];
    await signInTo(one, service.url, await newTenant('One'));
    await signInTo(two, service.url, await newTenant('Two'));
    for (const [page, name] of [
      [one, 'One'],
      [two, 'Two'],
    ] as const) {
      await openTenant(page);
      expect(await nameIn(page)).toBe(name);
    }
  });

  it('one after the other in one tab: the second is not offered the entity types of the first', async () => {
    const { tenantId } = await by.newTenant('Before');
    const { key } = await by.newApplication(tenantId, 'management', ...PERMISSIONS);
    const data = { entityType: 'Invoice', operation: 'create' };
    await reportFacts(service.folder, tenantId, [fact('ActivityReported', 'invoice-1', { data })]);
    await allProjected(service);
    const page = await openWindow(browser, FAILED_REQUESTS);
    await signInTo(page, service.url, key, 'logs');
    const types = page.locator('datalist').first();
    const offered = () => types.evaluate((list) => list.innerHTML);
    await until(async () => (await offered()).includes('Invoice'));
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.route('**/portal/api/logs/entity-types', (route) => route.abort());
    await signInHere(page, await newTenant('After'));
    await page.getByText('After created').waitFor();
    expect(await offered()).not.toContain('Invoice');
  });

  it('in two tabs of one browser: a tab never goes on with the key of the other', async () => {
    const keys = [await newTenant('First'), await newTenant('Second')] as const;
    const one = await openWindow(browser, FAILED_REQUESTS);
    await signInTo(one, service.url, keys[0]);
    await openTenant(one);
    await one.getByLabel('Name').fill('Meant for the first');
    const two = await openTab(one.context(), FAILED_REQUESTS);
    // As if the other tab could not be told: the service refuses what this one sends.
    await one.evaluate(() => (BroadcastChannel.prototype.postMessage = () => undefined));
    await two.addInitScript(() => (BroadcastChannel.prototype.postMessage = () => undefined));
    await two.goto(`${service.url}/portal`);
    await two.getByRole('button', { name: 'Sign out' }).click();
    await signInHere(two, keys[1]);
    await openTenant(two);
    expect(await nameIn(two)).toBe('Second');
    await one.getByRole('button', { name: 'Save' }).click();
    expect(await one.getByRole('alert').innerText()).toContain('Somebody has signed in with another key');
    for (const [key, name] of [
      [keys[0], 'First'],
      [keys[1], 'Second'],
    ] as const)
      expect((await ask(`${service.url}/tenants/self`, { key })).json.name).toBe(name);
    await one.reload();
    await one.getByLabel('Name').waitFor();
    expect(await nameIn(one)).toBe('Second');
  });

  it('in two tabs of one browser: a tab never exports the log of the other', async () => {
    const keys = [await newTenant('Exporting'), await newTenant('Exported')] as const;
    const one = await openWindow(browser, FAILED_REQUESTS);
    await signInTo(one, service.url, keys[0], 'logs');
    const link = one.getByRole('link', { name: 'Export CSV' });
    await link.waitFor();
    const two = await openTab(one.context(), FAILED_REQUESTS);
    await two.addInitScript(() => (BroadcastChannel.prototype.postMessage = () => undefined));
    await two.goto(`${service.url}/portal`);
    await two.getByRole('button', { name: 'Sign out' }).click();
    await signInHere(two, keys[1]);
    const saved: unknown[] = [];
    one.on('download', (download) => saved.push(download));
    await link.click();
    expect(await one.getByRole('alert').innerText()).toContain('Somebody has signed in with another key');
    expect([saved, new URL(one.url()).pathname]).toEqual([[], '/portal/logs']);
  });

  it('in two tabs of one browser: a tab learns at once that the other has signed out or in', async () => {
    const keys = [await newTenant('Third'), await newTenant('Fourth')] as const;
    const one = await openWindow(browser, FAILED_REQUESTS);
    await signInTo(one, service.url, keys[0], 'logs');
    await until(async () => (await one.locator('.state').innerText()) === 'Live');
    const two = await openTab(one.context(), FAILED_REQUESTS);
    await two.goto(`${service.url}/portal`);
    await two.getByRole('button', { name: 'Sign out' }).click();
    expect(await one.getByRole('alert').innerText()).toContain('Your session has ended');
    expect(await one.locator('table.log').count()).toBe(0);
    await signInHere(two, keys[1]);
    await openTenant(two);
    await signInHere(one, keys[0]);
    expect(await two.getByRole('alert').innerText()).toContain('Somebody has signed in with another key');
    await openTenant(one);
    expect(await nameIn(one)).toBe('Third');
  });
});
