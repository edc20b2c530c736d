import type { Browser, Page } from 'playwright-core';
import { revokeKey } from '../../../src/domain/application-keys';
import { TIMES } from '../../../src/times';
import type { Beside } from '../../support/beside';
import {
  accessibilityFaults,
  describeInBrowser,
  FAILED_REQUESTS,
  openWindow,
  signInTo,
} from '../../support/browser';
import { ask } from '../../support/http';
import { startPortal } from '../../support/portal';
import type { Service } from '../../support/service';
import { until } from '../../support/waiting';

const DAY_MS = 86_400_000;
const AT_ONCE = { ...TIMES, keyUsesMs: 10 };

describeInBrowser('the overview, Applications and keys', () => {
  let browser: Browser;
  let service: Service;
  let by: Beside;
  beforeAll(async () => {
    ({ browser, service, by } = await startPortal(AT_ONCE));
  });

  /** A tab that shows the portal to the owner of a Tenant. */
  const openAs = async (tenantId: string) => {
    const { key } = await by.newOwner(tenantId);
    const page = await openWindow(browser, FAILED_REQUESTS);
    await signInTo(page, service.url, key);
    const post = async (path: string, body: object) =>
      (await ask(`${service.url}${path}`, { method: 'POST', key, body })).json;
    return { page, post, owner: key };
  };
  const newTenantId = async () => (await by.run('tenant', 'create', '--name', 'Fresh')).tenant_id ?? '';
  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

  it('lead a new Tenant to its first call, and tick what arrives', async () => {
    const { page } = await openAs(await newTenantId());
    const step = (name: string) => page.getByRole('listitem').filter({ hasText: name });
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await step('Call the API').getByRole('button', { name: 'Copy' }).click();
    const curl = await page.evaluate<string>('navigator.clipboard.readText()');
    expect(curl).toBe(`curl -s ${service.url}/applications/key -H "SVC-API-KEY: $KEY"`);
    await page.getByRole('link', { name: 'New Application …' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name', { exact: true }).fill('Shop');
    await dialog.getByText('For your own servers').waitFor();
    await dialog.getByLabel('Type').selectOption('management');
    await dialog.getByText('For people and programs').waitFor();
    await button(page, 'All').click();
    await button(page, 'Reading only').click();
    await dialog.getByLabel('log:read').uncheck();
    await dialog.getByLabel('Name of the key').fill('first');
    await dialog.getByLabel(/^Expires/).fill('2099-01-01T00:00');
    expect(await accessibilityFaults(page)).toEqual([]);
    await button(page, 'Create').click();
    const key = (await page.locator('pre.key').innerText()).trim();
    await page.getByLabel('I have kept the key').check();
    await page.keyboard.press('Escape');
    await page.getByRole('row', { name: /^first .*not used yet/ }).waitFor();
    const { json } = await ask(`${service.url}/applications/key`, { key });
    expect(json.permissions).toContain('application:read');
    expect((json.permissions as readonly string[]).every((one) => one.endsWith(':read'))).toBe(true);
    expect(json.permissions).not.toContain('log:read');
    expect(json.keys).toMatchObject([{ name: 'first', expires_at: expect.stringMatching(/^(?:2099|2098)/) }]);
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByText('Last changes').waitFor();
    expect(await page.getByText('First steps').count()).toBe(0);
  });

  it('say which keys need a look, and how near the plan is', async () => {
    const { page, post, owner } = await openAs(await newTenantId());
    const expires_at = new Date(Date.now() + 3.5 * DAY_MS).toISOString();
    const { id, key } = await post('/applications', { name: 'Shop', type: 'private', expires_at });
    await post(`/applications/${String(id)}/keys`, { name: 'lasting' });
    expect((await ask(`${service.url}/tenants/self`, { key: String(key) })).status).toBe(403);
    await page.route('**/reports/usage', async (route) => {
      const token_report = {
        metrics_by_type: {},
        monthly_active_tokens: 45,
        included_monthly_active_tokens: 50,
      };
      await route.fulfill({ json: { token_report } });
    });
    const tile = (name: string) => page.locator('.tile').filter({ hasText: name });
    await until(
      async () =>
        (await ask(`${service.url}/logs?operation=deny`, { key: owner })).json.pagination.total_items,
    );
    await page.goto(`${service.url}/portal/`);
    await tile('Keys refused').getByRole('link', { name: 'Of Shop' }).waitFor();
    await tile('Keys that expire').getByText('a key of Shop in 3 days').waitFor();
    await tile('Keys unused for 90 days').getByText('0', { exact: true }).waitFor();
    expect(await tile('Active tokens').innerText()).toContain('90 % of 50');
    expect(await tile('Active tokens').locator('.number').getAttribute('class')).toBe('number warn');
    await page.getByRole('row', { name: /lasting · Key added/ }).waitFor();
    await page.getByRole('link', { name: 'a key of Shop' }).click();
    await page.getByRole('img', { name: '0 uses, 1 refusal in 30 days' }).waitFor();
    await page
      .getByRole('row', { name: /without a name .*expires soon/ })
      .getByRole('button', { name: 'Uses' })
      .click();
    await page.getByRole('row', { name: /1 × permission missing tenant:read/ }).waitFor();
  });

  it('show changes as they come, and say at once that the key was revoked', async () => {
    const tenantId = await newTenantId();
    const { key, keyId } = await by.newApplication(tenantId, 'management', 'log:read');
    const page = await openWindow(browser, FAILED_REQUESTS);
    const following = page.waitForRequest(/\/portal\/api\/events\?/);
    await signInTo(page, service.url, key);
    await page.getByText('Last changes').waitFor();
    await following;
    await by.newApplication(tenantId, 'private', 'token:read');
    await until(async () => (await page.getByRole('row', { name: /Application created/ }).count()) === 2);
    await by.write(tenantId, revokeKey(keyId));
    expect(await page.getByRole('alert').innerText()).toContain('Your session has ended');
  });

  it('find one of many Applications, and say of which the overview speaks', async () => {
    const { page, post } = await openAs(await newTenantId());
    for (let i = 1; i <= 104; i += 1)
      await post('/applications', {
        name: `Shop ${i}`,
        type: i === 7 ? 'public' : 'private',
        create_key: i < 9,
      });
    await page.getByRole('link', { name: 'Applications' }).click();
    await page.getByText('105 Applications').waitFor();
    const names = async () => page.getByRole('rowheader').allInnerTexts();
    expect((await names()).slice(0, 2)).toEqual(['Shop 104', 'Shop 103']);
    await button(page, 'Next').click();
    await button(page, 'Next').click();
    await page.getByText('Page 3 of 3').waitFor();
    expect((await names()).at(-1)).toBe('A management one');
    const widths = () =>
      page
        .getByRole('columnheader')
        .evaluateAll((all) => all.map((head) => head.getBoundingClientRect().width));
    const before = await widths();
    await page.getByLabel('Search').fill('shop 10');
    await page.getByText('6 of 105 Applications').waitFor();
    expect(await widths()).toEqual(before);
    await page.getByLabel('Order').selectOption('by name');
    expect(await names()).toEqual(['Shop 10', 'Shop 100', 'Shop 101', 'Shop 102', 'Shop 103', 'Shop 104']);
    await page.getByLabel('Type').selectOption('public');
    await button(page, 'Show all').click();
    await page.getByLabel('Type').selectOption('public');
    expect(await names()).toEqual(['Shop 7']);
    expect(page.url()).toBe(`${service.url}/portal/applications`);
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByText('Keys are those of the newest 100 of 105 Applications.').waitFor();
  });

  it('remember the theme, and lead to the API reference', async () => {
    const { page } = await openAs(await newTenantId());
    const scheme = () => page.evaluate('getComputedStyle(document.documentElement).colorScheme');
    await page.getByLabel('Theme').selectOption('Dark');
    expect(await scheme()).toBe('dark');
    await page.reload();
    await page.getByLabel('Theme').waitFor();
    expect(await scheme()).toBe('dark');
    expect(await page.getByRole('link', { name: 'API reference' }).first().getAttribute('href')).toBe(
      '/docs',
    );
  });
});
