import type { Browser } from 'playwright-core';
import { accessibilityFaults, describeInBrowser, launch, openWindow } from '../../support/browser';
import { startService, type Service } from '../../support/service';

describeInBrowser("the operator's page", () => {
  let browser: Browser;
  let service: Service;
  beforeAll(async () => {
    [browser, service] = await Promise.all([launch(), startService()]);
  });
  afterAll(async () => {
    await browser.close();
    await service.stop();
  });

  it.each(['light', 'dark'] as const)(
    'has nothing that axe-core objects to in %s mode, and fits every screen',
    async (colorScheme) => {
      const page = await openWindow(browser);
      await page.emulateMedia({ colorScheme });
      await page.goto(`${service.operationsUrl}/`);
      expect(await accessibilityFaults(page)).toEqual([]);
      for (const width of [360, 900, 1440]) {
        await page.setViewportSize({ width, height: 800 });
        const sticksOut = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
        expect([width, Math.max(0, sticksOut)]).toEqual([width, 0]);
      }
    },
  );
});
