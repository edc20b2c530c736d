import { readFileSync, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** The Chromium that `CHROMIUM` names, or one on the `PATH`. */
const findChromium = (): string | undefined => {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  const candidates = [
    process.env['CHROMIUM'] ?? '',
    ...folders.flatMap((folder) => NAMES.map((name) => join(folder, name))),
  ];
  return candidates.find((path) => path !== '' && existsSync(path));
};

const executablePath = findChromium();

const browsers: Browser[] = [];

/** Describes tests in a browser; without one they are skipped, and say so. */
export const describeInBrowser = (name: string, tests: () => void): void =>
  executablePath === undefined
    ? describe.skip(`${name} (no Chromium: install one, or set CHROMIUM to its path)`, tests)
    : describe(name, () => {
        afterAll(() => Promise.all(browsers.map((browser) => browser.close())));
        tests();
      });

/** Closed after all tests of the file, and before its services. */
export const launch = async (...more: readonly string[]): Promise<Browser> => {
  const browser = await chromium.launch({
    executablePath: executablePath ?? '',
    // The sandbox needs rights that containers seldom have.
    args: ['--no-sandbox', '--disable-dev-shm-usage', ...more],
  });
  browsers.push(browser);
  return browser;
};

/** What the browser itself logs for every response that is not a success. */
export const FAILED_REQUESTS = /^Failed to load resource:/;

/** Console errors, uncaught exceptions and violations of the content security policy, in any tab. */
const faults: string[] = [];

afterAll(() => expect(faults).toEqual([]));

/** `expected`: failures that the test causes. */
export const openTab = async (context: BrowserContext, expected: RegExp = /^$/): Promise<Page> => {
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.on('console', (message) => {
    const text = message.text();
    if (message.type() === 'error' && !expected.test(text)) faults.push(text);
  });
  page.on('pageerror', (error) => faults.push(error.message));
  return page;
};

export const openWindow = async (browser: Browser, expected?: RegExp): Promise<Page> =>
  openTab(await browser.newContext({ viewport: { width: 1280, height: 800 } }), expected);

/** Begins at a page of the portal; by default at its first. */
export const signInTo = async (page: Page, url: string, key: string, at = ''): Promise<void> => {
  await page.goto(`${url}/portal/${at}`);
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Pages' }).waitFor();
};

const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/** What axe-core finds, as one line each. */
export const accessibilityFaults = async (page: Page): Promise<readonly string[]> => {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    interface Found {
      readonly violations: readonly {
        readonly id: string;
        readonly help: string;
        readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
      }[];
    }
    interface Window {
      readonly axe: { run(options: object): Promise<Found> };
      matchMedia(query: string): { readonly matches: boolean };
    }
    const window = globalThis as unknown as Window;
    const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
    // In the dark mode only colours differ.
    const isDark = window.matchMedia('(prefers-color-scheme: dark)').matches;
    const colours = { type: 'rule', values: ['color-contrast'] };
    const { violations } = await window.axe.run({ runOnly: isDark ? colours : tags });
    return violations.flatMap(({ id, help, nodes }) =>
      nodes.map(({ html, failureSummary = '' }) => `${id}: ${help}: ${html.slice(0, 200)} ${failureSummary}`),
    );
  });
};
