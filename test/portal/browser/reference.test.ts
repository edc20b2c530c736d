import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { accessibilityFaults, describeInBrowser, launch, openTab } from '../../support/browser';
import { startService, type Service } from '../../support/service';

describeInBrowser('the API reference in a browser', () => {
  let browser: Browser;
  let service: Service;
  beforeAll(async () => {
    [browser, service] = await Promise.all([launch(), startService()]);
  });
  afterAll(async () => {
    await browser.close();
    await service.stop();
  });

  const opened = async (options: BrowserContextOptions = {}): Promise<Page> => {
    const wide = { viewport: { width: 1280, height: 800 } };
    const page = await openTab(await browser.newContext({ ...wide, ...options }));
    await page.goto(`${service.url}/docs`);
    return page;
  };
  const links = (page: Page) => page.locator('.calls li a:visible').allInnerTexts();
  const sections = (page: Page) => page.locator('.reference section:visible > :is(h2, h3)').allInnerTexts();

  it('finds calls by the words in them as one types', async () => {
    const page = await opened();
    const all = await links(page);
    await page.keyboard.press('/');
    await page.keyboard.type('grace_seconds');
    expect(await links(page)).toEqual(['Replace the keys of an Application by a new one']);
    expect(await sections(page)).toEqual(await links(page));
    expect(await page.locator('.reference h2:visible').allInnerTexts()).toEqual(['Applications']);
    expect(await page.locator('.calls output').innerText()).toBe(`1 of ${all.length}`);
    await page.getByRole('searchbox').fill('');
    expect(await links(page)).toEqual(all);
  });

  it.each([1280, 360])(
    'keeps the list in view, and shows samples in one language, at %d px',
    async (width) => {
      const page = await opened({ viewport: { width, height: 800 } });
      const list = page.getByRole('navigation', { name: 'Calls' });
      await page.locator('#updateTenant').scrollIntoViewIfNeeded();
      await page.mouse.wheel(0, 300);
      const box = await list.boundingBox();
      expect(box?.y).toBeGreaterThanOrEqual(0);
      expect(box?.y).toBeLessThan(20);
      if (width === 360) await page.getByLabel('List of calls').check();
      await page.getByLabel('Python').check();
      expect(await page.locator('#updateTenant pre.copy:visible').allInnerTexts()).toEqual([
        expect.stringContaining('import urllib.request'),
      ]);
      await list.getByRole('link', { name: 'List logs' }).click();
      expect(new URL(page.url()).hash).toBe('#listLogs');
      await page.locator('[aria-current]', { hasText: 'List logs' }).waitFor({ state: 'attached' });
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
    },
  );

  it('is whole without scripts', async () => {
    const scripted = await opened();
    const plain = await opened({ javaScriptEnabled: false });
    expect(await links(plain)).toEqual(await links(scripted));
    expect(await sections(plain)).toEqual(await sections(scripted));
    expect(await plain.getByRole('searchbox').count()).toBe(0);
    await plain.getByLabel('TypeScript').check();
    expect(await plain.locator('#getTenant pre.copy:visible').count()).toBe(1);
  });

  it.each([
    [1280, 'light'],
    [1280, 'dark'],
    [360, 'light'],
    [360, 'dark'],
  ] as const)('is accessible at %d px in %s colours', async (width, colorScheme) => {
    const page = await opened({ viewport: { width, height: 800 }, colorScheme });
    expect(await accessibilityFaults(page)).toEqual([]);
  });
});
