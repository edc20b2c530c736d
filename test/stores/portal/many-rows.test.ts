import { DatabaseSync } from '@photostructure/sqlite';
import { createReadStream, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { monotonicMs } from '../../../src/async/clock';
import { beside } from '../../support/beside';
import { describeInBrowser, launch, openWindow, signInTo } from '../../support/browser';
import { customerOf } from '../../support/customers';
import { freshFolder } from '../../support/folders';
import { allProjected, serviceProcess, type ServiceProcess } from '../../support/service';
import { until } from '../../support/waiting';

/** `ROWS=1000000 npm run test:stores -- many-rows` takes minutes. */
const ROWS = Number(process.env['ROWS'] ?? 3_000);
const WITHIN_MS = 90_000 + ROWS;
const MAX_SHOWN = 2_000;
const DAY_MS = 86_400_000;
const SINCE = Date.now() - 29 * DAY_MS;

/** Facts of one tenant over four weeks, written into the log of a stopped service. */
const fill = (folder: string, tenantId: string): void => {
  const db = new DatabaseSync(join(folder, 'events.db'));
  const stream = `activity-${tenantId}`;
  const last = db.prepare('SELECT max(revision) AS revision FROM events WHERE stream = ?').get(stream);
  const next = Number(last?.['revision'] ?? -1) + 1;
  db.exec(`
    WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ${ROWS})
    INSERT INTO events (stream, revision, id, type, data, metadata, recorded_at)
    SELECT '${stream}', ${next} + n, format('00000000-0000-4000-9000-%012d', n), 'TokenCreated',
      format('{"entityId":"tok_%d"}', n), '{"version":1}', ${SINCE} + n * ${28 * DAY_MS} / ${ROWS}
    FROM numbers;
    PRAGMA wal_checkpoint(TRUNCATE)`);
  db.close();
};

const linesIn = async (file: string): Promise<number> => {
  let count = 0;
  for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>)
    for (const byte of chunk) if (byte === 10) count += 1;
  return count;
};

describeInBrowser(`a log of ${ROWS} rows`, () => {
  let browser: Browser;
  let service: ServiceProcess;
  let page: Page;
  const figures: string[] = [];
  const timed = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    const began = monotonicMs();
    const result = await work();
    figures.push(`${what}: ${Math.round(monotonicMs() - began)} ms`);
    return result;
  };
  beforeAll(async () => {
    const env = { DATA_DIR: freshFolder() };
    const first = await serviceProcess(env);
    const customer = await customerOf(
      () => first,
      await beside(first),
      new Date(SINCE - DAY_MS).toISOString(),
    );
    await first.stop();
    fill(first.folder, customer.tenantId);
    [browser, service] = await Promise.all([
      launch(),
      timed('start, with projecting', () => serviceProcess(env)),
    ]);
    await allProjected(service);
    page = await openWindow(browser);
    await signInTo(page, service.url, customer.key, 'logs');
  }, WITHIN_MS);
  afterAll(async () => {
    await service.stop();
    if (process.env['ROWS'] !== undefined) process.stdout.write(`${figures.join('\n')}\n`);
  });

  const rows = () => page.locator('table.log [data-id]');
  const open = async (query: string): Promise<void> => {
    await page.goto(`${service.url}/portal/logs${query === '' ? '?source=all' : query}`);
    await rows().first().waitFor();
  };

  it('is shown like any other, from the newest row and from any time', async () => {
    await timed('first rows', () => open(''));
    // Three of its own, and of the uses of its key.
    await page.getByText(new RegExp(`^${(ROWS + 4).toLocaleString('en').slice(0, -1)}[4-9] rows$`)).waitFor();
    await timed('chart', () => page.getByRole('slider').waitFor());
    const middle = new Date(SINCE + 14 * DAY_MS).toISOString();
    await timed('rows before a time', () => open(`?end_date=${middle}`));
    await timed('rows of an entity', () => open(`?entity_type=token&entity_id=tok_${ROWS / 2}`));
    expect(await rows().count()).toBe(1);
  });

  it(`keeps ${MAX_SHOWN} rows on the page, and continues from there`, async () => {
    await open('');
    await timed('scrolling to the end of the page', () =>
      until(async () => {
        await page.locator('.list').evaluate((list) => list.scrollTo(0, list.scrollHeight));
        return page.getByRole('button', { name: 'Continue from here' }).isVisible();
      }, 60_000),
    );
    expect(await rows().count()).toBe(MAX_SHOWN);
    const last = await rows().last().getAttribute('data-id');
    await page.getByRole('button', { name: 'Continue from here' }).click();
    await until(async () => (await rows().first().getAttribute('data-id')) === last);
  });

  it(
    'is exported as a whole, while the page stays usable',
    async () => {
      await open('?entity_type=token');
      for (const [name, extra] of [
        ['NDJSON', 1],
        ['CSV', 1],
      ] as const) {
        const [download] = await Promise.all([
          page.waitForEvent('download'),
          page.getByRole('link', { name: `Export ${name}` }).click(),
        ]);
        const path = await timed(`export as ${name}`, () => download.path());
        figures.push(`size as ${name}: ${statSync(path).size} bytes`);
        expect([name, await linesIn(path)]).toEqual([name, ROWS + extra]);
      }
      await open('');
    },
    WITHIN_MS,
  );
});
