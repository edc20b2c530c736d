import type { Browser } from 'playwright-core';
import { beside } from '../../support/beside';
import { describeInBrowser, FAILED_REQUESTS, launch, openWindow, signInTo } from '../../support/browser';
import { freshFolder } from '../../support/folders';
import { freePort } from '../../support/free-port';
import { fact, reportFacts } from '../../support/reported-facts';
import { serviceProcess } from '../../support/service';
import { until } from '../../support/waiting';

describeInBrowser('the tail of the log', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });

  it('goes on without a gap or a double when the server is killed and started again', async () => {
    const env = { PORT: await freePort(), DATA_DIR: freshFolder() };
    const first = await serviceProcess(env);
    const tenantId = await (await beside(first)).tenantId();
    const page = await openWindow(browser, FAILED_REQUESTS);
    await signInTo(page, first.url, first.key);
    await page.goto(`${first.url}/portal/logs?source=all`);
    const state = () => page.locator('.state').innerText();
    const report = (...ids: readonly string[]) =>
      reportFacts(
        first.folder,
        tenantId,
        ids.map((id) => fact('TokenCreated', id)),
      );
    await until(async () => (await state()) === 'Live');
    await report('before-1', 'before-2');
    await page.getByText('before-2').waitFor();
    await first.kill();
    await until(async () => (await state()).startsWith('Reconnecting'));
    await report('between-1', 'between-2');
    const second = await serviceProcess(env);
    await report('after-1');
    await page.getByText('after-1').waitFor();
    await until(async () => (await state()) === 'Live');
    const ids = await page.locator('td.message code').allInnerTexts();
    const ofFacts = ids.filter((id) => /^(before|between|after)-/.test(id));
    expect(ofFacts).toEqual(['after-1', 'between-2', 'between-1', 'before-2', 'before-1']);
    const rows = await page
      .locator('table.log [data-id]')
      .evaluateAll((all) => all.map((row) => row.getAttribute('data-id')));
    expect(new Set(rows).size).toBe(rows.length);
    await second.stop();
  });
});
