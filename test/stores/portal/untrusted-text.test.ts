import type { Page } from 'playwright-core';
import { describeInBrowser, FAILED_REQUESTS } from '../../support/browser';
import { ask } from '../../support/http';
import { openPortal } from '../../support/portal';
import { fact, reportFacts } from '../../support/reported-facts';
import { allProjected, type Service } from '../../support/service';

const MAX_NAME = 200;

const NAMES = [
  ['markup', `"><script>alert(1)</script><img src=x onerror=alert(1)>'{{7*7}}&lt;b&gt;`],
  ['right-to-left text', '\u05e9\u05dc\u05d5\u05dd \u202e\u0627\u0644\u0639\u0631\u0628\u064a\u0629 (1)'],
  ['emoji', '\u{1f469}\u200d\u{1f469}\u200d\u{1f467} \u{1f3f3}\ufe0f\u200d\u{1f308}'.repeat(8)],
  ['200 letters without a space', 'W'.repeat(MAX_NAME)],
] as const;

const LONG = `<b>${'long '.repeat(1_000)}${'W'.repeat(5_000)}</b>`;

describeInBrowser('text that others have written', () => {
  let service: Service;
  let tenantId: string;
  let page: Page;
  beforeAll(async () => {
    ({ service, tenantId, page } = await openPortal({ expected: FAILED_REQUESTS }));
  });

  /** Nothing of it has become an element, and nothing sticks out of the page, on a phone or a wide screen. */
  const expectOnlyText = async (): Promise<void> => {
    expect(await page.locator('img, #app script, #app b').count()).toBe(0);
    for (const width of [360, 1280]) {
      await page.setViewportSize({ width, height: 800 });
      const sticksOut = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
      expect([width, Math.max(0, sticksOut)]).toEqual([width, 0]);
    }
  };
  const open = (path: string) => page.goto(`${service.url}/portal/${path}`);
  const dialog = () => page.getByRole('dialog');

  it.each(NAMES)('is shown as it is in names: %s', async (_, name) => {
    const put = { method: 'PUT', key: service.key, body: { name } };
    expect((await ask(`${service.url}/tenants/self`, put)).status).toBe(200);
    await open('tenant');
    expect(await page.getByLabel('Name').inputValue()).toBe(name);
    await expectOnlyText();
    await open('applications');
    await page.getByRole('button', { name: 'New Application …' }).click();
    await dialog().getByLabel('Name', { exact: true }).fill(name);
    await dialog().getByRole('button', { name: 'Create' }).click();
    await page.locator('pre.key').waitFor();
    await dialog().getByLabel('I have kept the key').check();
    await dialog().getByRole('button', { name: 'Close' }).click();
    const heading = page.locator('h1.name');
    await heading.waitFor();
    expect(await heading.evaluate((element) => element.textContent)).toBe(name);
    await page.getByRole('button', { name: 'New key …' }).click();
    await dialog().getByLabel('Name', { exact: true }).fill(name);
    await dialog().getByRole('button', { name: 'Create' }).click();
    await page.locator('pre.key').waitFor();
    await dialog().getByLabel('I have kept the key').check();
    await dialog().getByRole('button', { name: 'Close' }).click();
    expect(await page.locator('th[scope=row] .key-name').last().textContent()).toBe(name);
    await expectOnlyText();
    await open('applications');
    expect(await page.getByRole('link', { name }).first().textContent()).toBe(name);
    await expectOnlyText();
    await open('logs?entity_type=tenant');
    await page.locator('a.open-row').first().click();
    await page.getByRole('columnheader', { name: 'Before' }).waitFor();
    expect(await page.locator('ins').first().textContent()).toBe(name);
    await expectOnlyText();
  });

  it('is shown in full in a row of the log: 10,000 characters', async () => {
    const data = { entityType: 'thing', operation: 'audit', message: LONG };
    await reportFacts(service.folder, tenantId, [fact('ActivityReported', 'W'.repeat(250), { data })]);
    await allProjected(service);
    await open('logs?entity_type=thing');
    await page.locator('a.open-row').first().waitFor();
    expect(LONG.length).toBeGreaterThan(10_000);
    await expectOnlyText();
    await page.locator('a.open-row').first().click();
    await page.getByText('Raw event').click();
    expect((await page.locator('aside pre').textContent())?.includes(JSON.stringify(LONG))).toBe(true);
    await expectOnlyText();
  });

  it('cannot be typed where it would be too long: 10,000 characters', async () => {
    await open('tenant');
    await page.getByLabel('Name').fill('V'.repeat(10_000));
    expect((await page.getByLabel('Name').inputValue()).length).toBe(MAX_NAME);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved.').waitFor();
    await expectOnlyText();
  });
});
