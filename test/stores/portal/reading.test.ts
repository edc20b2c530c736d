import type { Browser, Page } from 'playwright-core';
import { accessibilityFaults, describeInBrowser, openTab, signInTo } from '../../support/browser';
import { numbered, openPortal } from '../../support/portal';
import type { Service } from '../../support/service';
import { until } from '../../support/waiting';

/** More than three pages. */
const FACTS = 400;
const PHONE = { width: 390, height: 844 };

describeInBrowser('whoever reads the log', () => {
  let browser: Browser;
  let service: Service;
  let page: Page;
  beforeAll(async () => {
    const { by, tenantId, ...portal } = await openPortal({ tokens: numbered(FACTS, 'read') });
    for (let i = 0; i < 5; i += 1) await by.newApplication(tenantId, 'private', 'token:read');
    ({ browser, service, page } = portal);
  });

  const rows = () => page.locator('table.log [data-id]');
  const list = () => page.locator('.list');
  const open = async (query: string): Promise<void> => {
    await page.goto(`${service.url}/portal/logs${query}`);
    await rows().first().waitFor();
  };

  it('sees exact times below their day, in rows of one height', async () => {
    const tokyo = await openTab(await browser.newContext({ timezoneId: 'Asia/Tokyo' }));
    await signInTo(tokyo, service.url, service.key);
    await tokyo.goto(`${service.url}/portal/logs?source=all`);
    const time = tokyo.locator('[data-id] td.time time').first();
    const at = (await time.getAttribute('datetime')) ?? '';
    const parts = {
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      fractionalSecondDigits: 3,
    } as const;
    const format = new Intl.DateTimeFormat('en-GB', { ...parts, timeZone: 'Asia/Tokyo' });
    expect(await time.innerText()).toBe(format.format(new Date(at)));
    expect(await tokyo.locator('tr.day').first().innerText()).toMatch(/^Today, \w+, \d+ \w+ 20\d\d$/);
    const heights = await tokyo
      .locator('[data-id]')
      .evaluateAll((all) => all.map((row) => row.getBoundingClientRect().height));
    expect(new Set(heights)).toEqual(new Set([30]));
    await tokyo.context().close();
  });

  it('asks for no names one by one', async () => {
    const asked: string[] = [];
    page.on('request', (request) =>
      asked.push(new URL(request.url()).pathname + new URL(request.url()).search),
    );
    await open('');
    await rows().filter({ hasText: 'A private one · key added' }).first().waitFor();
    await page.waitForLoadState('networkidle', { timeout: 2_000 }).catch(() => undefined);
    expect(asked.filter((path) => /entity_type=(?:key|application)/.test(path))).toEqual([]);
    expect(asked.filter((path) => path.startsWith('/portal/api/applications?'))).toHaveLength(1);
    page.removeAllListeners('request');
  });

  it('finds rows and place again by Back', async () => {
    await open('?source=fact');
    await until(async () => {
      await list().evaluate((element) => element.scrollTo(0, 5_000));
      return (await rows().count()) > 200;
    });
    await list().evaluate((element) => element.scrollTo(0, 3_000));
    const count = await rows().count();
    await rows().nth(110).click();
    await page.getByRole('button', { name: 'Filter by this entity' }).click();
    await until(async () => (await rows().count()) === 1);
    await page.goBack();
    await until(async () => (await rows().count()) === count);
    await until(async () => (await list().evaluate((element) => element.scrollTop)) === 3_000);
    await page.goBack();
    await page.getByRole('complementary').waitFor({ state: 'detached' });
    expect(await list().evaluate((element) => element.scrollTop)).toBe(3_000);
  });

  it('goes through the rows by keys and by the panel, which names the keys', async () => {
    await open('?source=fact');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement.tagName')).toBe('MAIN');
    await list().focus();
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowUp', 'ArrowDown', 'Enter'])
      await page.keyboard.press(key);
    const title = page.getByRole('complementary').getByRole('heading', { level: 2 });
    await title.filter({ hasText: `read-${FACTS - 2}` }).waitFor();
    await page.getByRole('button', { name: 'Next' }).click();
    await title.filter({ hasText: `read-${FACTS - 3}` }).waitFor();
    await page.getByRole('button', { name: 'Previous' }).click();
    await title.filter({ hasText: `read-${FACTS - 2}` }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('complementary').waitFor({ state: 'detached' });
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.keyboard.press('Escape');
  });

  it('has the rows on the upper half of a phone, and one scroller', async () => {
    await page.setViewportSize(PHONE);
    await open('?source=all');
    const top = await rows()
      .first()
      .evaluate((row) => row.getBoundingClientRect().top);
    expect(top).toBeLessThan(PHONE.height / 2);
    const sizes = await page
      .locator('input')
      .evaluateAll((all) =>
        all.map((input) => (globalThis as unknown as Window).getComputedStyle(input).fontSize),
      );
    expect(new Set(sizes)).toEqual(new Set(['16px']));
    expect(await list().evaluate((element) => element.scrollHeight - element.clientHeight)).toBe(0);
    await page.evaluate('scrollTo(0, 3000)');
    await until(async () => (await page.locator('.state').innerText()).startsWith('Paused'));
    await rows().nth(40).click();
    const scrolled = await page.evaluate<number>('scrollY');
    expect(scrolled).toBeGreaterThan(1_000);
    const panel = await page.getByRole('complementary').boundingBox();
    expect(panel).toEqual({ x: 0, y: 0, ...PHONE });
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByRole('link', { name: 'Close' }).click();
    expect(await page.evaluate('scrollY')).toBe(scrolled);
    await page.getByRole('button', { name: 'Filters' }).click();
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width);
  });
});

interface Window {
  getComputedStyle(element: unknown): { readonly fontSize: string };
}
