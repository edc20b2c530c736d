import { availableParallelism, loadavg } from 'node:os';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { accessibilityFaults, describeInBrowser, openTab, openWindow, signInTo } from '../../support/browser';
import { numbered, reportTokens, startPortal } from '../../support/portal';
import type { Service } from '../../support/service';
import { until } from '../../support/waiting';

const MAX_BYTES = 140_000;
const MAX_MS = 1_000;
const SLOWDOWN = 4;
/** From the sign-in until the last changes are there, without that; the median of so many. */
const MAX_CHANGES_MS = 300;
const SIGN_INS = 10;
/** The best of these counts: the machine may be busy. */
const ATTEMPTS = 5;
/** Others keep it so busy that the time on the clock says nothing about the page. */
const isBusy = (): boolean => (loadavg()[0] ?? 0) > availableParallelism();

interface Loaded {
  /** On the clock, with a slow processor. */
  readonly ms: number;
  /** Of the slow processor, for everything that the page does. */
  readonly cpuMs: number;
  readonly bytes: number;
}

const cpuMsIn = async (cdp: CDPSession): Promise<number> => {
  const { metrics } = await cdp.send('Performance.getMetrics');
  return 1_000 * (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? NaN);
};

const noteWhenUsable = (selector: string): string => `
  new MutationObserver((_, observer) => {
    if (document.querySelector('${selector}') === null) return;
    globalThis.usableAt = performance.now();
    observer.disconnect();
  }).observe(document, { childList: true, subtree: true })`;

/** Loads the page with an empty cache and a slow processor: until what `selector` names is there. */
const load = async (page: Page, cdp: CDPSession, url: string, selector: string): Promise<Loaded> => {
  await cdp.send('Network.clearBrowserCache');
  let bytes = 0;
  const onFinished = ({ encodedDataLength }: { encodedDataLength: number }): void => {
    bytes += encodedDataLength;
  };
  cdp.on('Network.loadingFinished', onFinished);
  await cdp.send('Emulation.setCPUThrottlingRate', { rate: SLOWDOWN });
  await page.goto(url, { waitUntil: 'commit' });
  await page.locator(selector).first().waitFor();
  const ms = await page.evaluate<number>('usableAt');
  const cpuMs = await cpuMsIn(cdp);
  await cdp.send('Emulation.setCPUThrottlingRate', { rate: 1 });
  cdp.off('Network.loadingFinished', onFinished);
  return { ms, cpuMs, bytes };
};

describeInBrowser('the first page', () => {
  let browser: Browser;
  let service: Service;
  beforeAll(async () => {
    const portal = await startPortal();
    ({ browser, service } = portal);
    await reportTokens(portal, numbered(300, 'token'));
  });

  const SIGN_IN = 'input[name=key]';
  const ROWS = 'table.log [data-id]';
  const CHANGES = 'main tbody td time';
  const CHART = '.histogram .bar';

  it.each([
    ['to sign in', '', SIGN_IN],
    ['with the overview', '', CHANGES],
    ['with the log', 'logs', ROWS],
  ])('%s is small, and usable within a second on a slow processor', async (_, at, selector) => {
    const page = await openWindow(browser);
    if (selector !== SIGN_IN) await signInTo(page, service.url, service.key);
    await page.addInitScript(noteWhenUsable(selector));
    const cdp = await page.context().newCDPSession(page);
    await cdp.send('Network.enable');
    await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
    const attempts: Loaded[] = [];
    for (let i = 0; i < ATTEMPTS; i += 1)
      attempts.push(await load(page, cdp, `${service.url}/portal/${at}`, selector));
    expect(Math.max(...attempts.map(({ bytes }) => bytes))).toBeLessThanOrEqual(MAX_BYTES);
    expect(Math.min(...attempts.map(({ cpuMs }) => cpuMs))).toBeLessThanOrEqual(MAX_MS);
    if (!isBusy()) expect(Math.min(...attempts.map(({ ms }) => ms))).toBeLessThanOrEqual(MAX_MS);
  });

  /** What a page asks for until it is complete, and then to follow the changes. */
  const requestsOf = (page: Page) => {
    const asked: string[] = [];
    page.on('request', (request) => {
      const { protocol, pathname } = new URL(request.url());
      if (protocol === 'http:') asked.push(`${request.method()} ${pathname}`);
    });
    const following = () => until(() => asked.at(-1) === 'GET /portal/api/events');
    return { asked, following };
  };
  const FOLLOWING = [
    expect.stringMatching(/^GET \/portal\/api\/events\/[0-9a-f-]{36}$/),
    'GET /portal/api/events',
  ];
  const SHOWN = [
    'GET /portal/api/applications',
    'GET /portal/api/logs',
    'GET /portal/api/logs',
    'GET /portal/api/tenants/self/reports/usage',
  ];

  it('of somebody who is signed in is complete after six requests of any kind', async () => {
    const page = await openWindow(browser);
    const followed = page.waitForRequest(/\/portal\/api\/events\?/);
    await signInTo(page, service.url, service.key);
    await followed;
    const { asked, following } = requestsOf(page);
    await page.goto(`${service.url}/portal`);
    await page.locator(CHANGES).first().waitFor();
    await following();
    const script = expect.stringMatching(/^GET \/portal\/files\/main-\w+\.js$/);
    expect(asked.slice(0, 6).toSorted()).toEqual(['GET /portal', ...SHOWN, script]);
    expect(asked.slice(6)).toEqual(FOLLOWING);
    expect(await page.getByText('Loading …').count()).toBe(0);
    await page.context().close();
  });

  it('shows the last changes 300 ms after the sign-in', async () => {
    const took: number[] = [];
    for (let i = 0; i < SIGN_INS; i += 1) {
      const page = await openWindow(browser);
      await page.addInitScript(noteWhenUsable(CHANGES));
      await page.goto(`${service.url}/portal`);
      await page.getByLabel('API key').fill(service.key);
      const { asked, following } = requestsOf(page);
      await page.evaluate(`addEventListener('submit', () => performance.mark('signed in'))`);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.locator(CHANGES).first().waitFor();
      await following();
      expect(asked.slice(0, 2)).toEqual(['POST /portal/session', 'GET /portal/session']);
      expect(asked.slice(2, 6).toSorted()).toEqual(SHOWN);
      took.push(
        await page.evaluate<number>(`usableAt - performance.getEntriesByName('signed in')[0].startTime`),
      );
      await page.context().close();
    }
    if (!isBusy()) expect(took.toSorted((a, b) => a - b)[SIGN_INS / 2]).toBeLessThanOrEqual(MAX_CHANGES_MS);
  });

  it('is as small for viewers whose days are not those of UTC', async () => {
    const page = await openTab(await browser.newContext({ timezoneId: 'Asia/Kolkata' }));
    await signInTo(page, service.url, service.key);
    await page.addInitScript(noteWhenUsable(CHART));
    const cdp = await page.context().newCDPSession(page);
    await cdp.send('Network.enable');
    await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
    const { bytes } = await load(page, cdp, `${service.url}/portal/logs`, CHART);
    expect(bytes).toBeLessThanOrEqual(MAX_BYTES);
  });

  it.each(['light', 'dark'] as const)(
    'to sign in has nothing that axe-core objects to in %s mode',
    async (colorScheme) => {
      const page = await openWindow(browser, /^Failed to load resource:/);
      await page.emulateMedia({ colorScheme });
      await page.goto(`${service.url}/portal`);
      await page.locator(SIGN_IN).waitFor();
      expect(await accessibilityFaults(page)).toEqual([]);
      await page.locator(SIGN_IN).fill('key_wrong');
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('alert').waitFor();
      expect(await accessibilityFaults(page)).toEqual([]);
    },
  );
});
