import type { Page, Route } from 'playwright-core';
import { pause } from '../../../src/async/clock';
import { describeInBrowser, FAILED_REQUESTS } from '../../support/browser';
import { ask } from '../../support/http';
import { numbered, openPortal } from '../../support/portal';
import type { Service } from '../../support/service';
import { until } from '../../support/waiting';

/** More than the first page has. */
const FACTS = 70;

const rowOf = (id: string) => ({
  id,
  entity_type: 'token',
  entity_id: id,
  operation: 'create',
  message: 'Token created',
  created_at: new Date(1_700_000_000_000).toISOString(),
});

/** Some responses are replaced: those of a service that fails, or of a long log. */
describeInBrowser('the rows of the log', () => {
  let service: Service;
  let page: Page;
  beforeAll(async () => {
    const tokens = numbered(FACTS, 'tok');
    ({ service, page } = await openPortal({ at: 'logs', expected: FAILED_REQUESTS, tokens }));
  });
  afterEach(() => page.unrouteAll({ behavior: 'ignoreErrors' }));

  const open = (query = '?source=all') => page.goto(`${service.url}/portal/logs${query}`);
  const rows = () => page.locator('table.log [data-id]');
  const fail = (route: Route) =>
    route.fulfill({ status: 503, json: { status: 503, code: 'event_log_unavailable', title: 'Away.' } });

  it('are not followed from the first event if the newest one cannot be read', async () => {
    await page.route(/\/portal\/api\/events\/[^/?]+$/, fail);
    await open();
    await page.getByRole('alert').filter({ hasText: 'Away.' }).waitFor();
    await rows().first().waitFor();
    expect(await page.locator('.state').innerText()).toBe('Not following');
    const { json } = await ask(`${service.url}/logs`, { key: service.key });
    await page.getByText(`${json.pagination.total_items} rows`, { exact: true }).waitFor();
  });

  it('of an invalid date are refused by the service', async () => {
    await open('?start_date=24h');
    await page.getByRole('alert').filter({ hasText: 'start_date' }).waitFor();
    await page.getByRole('link', { name: 'Clear' }).click();
    await rows().first().waitFor();
  });

  it('of a filter that selects none are none, also once they are followed', async () => {
    await open('?entity_id=nothing');
    await until(async () => (await page.locator('.state').innerText()) === 'Live');
    await pause(500);
    expect(await rows().count()).toBe(0);
  });

  it('end at 2,000 rows, however many of the last page fit', async () => {
    const pages: Readonly<Record<string, number>> = { first: 1_960, second: 100 };
    const asked = new Set<string>();
    await page.route(/\/portal\/api\/logs\?size=(?:50|100)/, (route) => {
      const start = new URL(route.request().url()).searchParams.get('start') ?? 'first';
      asked.add(start);
      const data = Array.from({ length: pages[start] ?? 0 }, (_, i) => rowOf(`${start}-${i}`));
      const pagination = { total_items: 5_000, next: start === 'first' ? 'second' : 'third' };
      return pages[start] === undefined ? fail(route) : route.fulfill({ json: { pagination, data } });
    });
    await open();
    await rows().first().waitFor();
    await page.locator('.list').evaluate((list) => list.scrollTo(0, list.scrollHeight));
    await page.getByRole('button', { name: 'Continue from here' }).waitFor();
    expect(await rows().count()).toBe(2_000);
    expect([...asked]).toEqual(['first', 'second']);
    expect(await page.getByRole('alert').count()).toBe(0);
  });

  it('are not said to be none while those of another filter are loaded', async () => {
    await open();
    await rows().first().waitFor();
    await page.route(/\/portal\/api\/logs\?/, () => undefined);
    const older = page.waitForRequest(/[?&]start=/);
    await page.locator('.list').evaluate((list) => list.scrollTo(0, list.scrollHeight));
    const aborted = page.waitForEvent('requestfailed');
    await older;
    await page.getByLabel('Operation').fill('create');
    await page.keyboard.press('Enter');
    await aborted;
    await page.getByText('Loading …').first().waitFor();
    expect(await page.getByText('No rows match these filters.').count()).toBe(0);
  });

  it('can be far from the newest: the portal goes on by itself, and says how far it is', async () => {
    let pages = 0;
    await page.route(/\/portal\/api\/logs\?entity_type=card&operation=use/, (route) => {
      pages += 1;
      const json = { pagination: { next: `page ${pages}` }, data: pages === 30 ? [rowOf('far')] : [] };
      return route.fulfill({ json: pages === 30 ? { ...json, pagination: {} } : json });
    });
    await open('?entity_type=card&operation=use');
    await page.getByText(/Loading … [1-9][0-9,]*,000 rows looked at/).waitFor();
    await rows().filter({ hasText: 'far' }).waitFor();
  });
});
