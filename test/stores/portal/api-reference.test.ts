import type { Browser } from 'playwright-core';
import { routes } from '../../../src/http/api';
import { describeInBrowser, launch, openWindow } from '../../support/browser';
import { startService, type Service } from '../../support/service';

describeInBrowser('the API reference in a browser', () => {
  let browser: Browser;
  let service: Service;
  beforeAll(async () => {
    // A viewer may behave differently where it knows that the name is local.
    [browser, service] = await Promise.all([
      launch('--host-resolver-rules=MAP ledger.example 127.0.0.1'),
      startService(),
    ]);
  });

  it('shows every call, asks no other host, and makes calls with a key', async () => {
    const page = await openWindow(browser);
    const { port } = new URL(service.url);
    const asked = new Set<string>();
    page.on('request', (request) => asked.add(new URL(request.url()).host));
    await page.goto(`http://ledger.example:${port}/docs`);
    await page.locator('.opblock').first().waitFor();
    expect(await page.locator('.opblock').count()).toBe(routes.length);

    await page.getByRole('button', { name: 'Authorize' }).click();
    await page.locator('.auth-container input').fill(service.key);
    await page.locator('.auth-container .authorize').click();
    await page.locator('.auth-container .btn-done').click();
    const getTenant = page.locator('#operations-Tenants-getTenant');
    await getTenant.locator('.opblock-summary-control').click();
    await getTenant.getByRole('button', { name: 'Try it out' }).click();
    await getTenant.getByRole('button', { name: 'Execute' }).click();
    expect(
      await getTenant.locator('.live-responses-table .response .response-col_status').innerText(),
    ).toMatch(/^200/);
    expect([...asked]).toEqual([`ledger.example:${port}`]);
  });
});
