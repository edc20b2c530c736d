import { readFileSync } from 'node:fs';
import type { Browser, Locator, Page, Request } from 'playwright-core';
import { revokeKey } from '../../../src/domain/application-keys';
import { openCheckpoint, readProof } from '../../../src/evidence/note';
import type { Beside } from '../../support/beside';
import {
  accessibilityFaults,
  describeInBrowser,
  FAILED_REQUESTS,
  openTab,
  openWindow,
  signInTo,
} from '../../support/browser';
import { ask } from '../../support/http';
import { numbered, openPortal, reportTokens } from '../../support/portal';
import { fact, reportFacts } from '../../support/reported-facts';
import { allProjected, type Service } from '../../support/service';
import { until } from '../../support/waiting';

const NASTY = '<img src=x onerror=alert(1)> "quoted" \u05e9\u05dc\u05d5\u05dd \u{1f600} & more';

describeInBrowser('the log explorer', () => {
  let browser: Browser;
  let service: Service;
  let by: Beside;
  let tenantId: string;
  let page: Page;
  beforeAll(async () => {
    ({ browser, service, by, tenantId, page } = await openPortal({ at: 'logs' }));
    const put = {
      method: 'PUT',
      key: service.key,
      body: { name: NASTY },
      headers: { 'SVC-TRACE-ID': 'rename-1' },
    };
    expect((await ask(`${service.url}/tenants/self`, put)).status).toBe(200);
    await report(numbered(300, 'many'));
  });
  afterAll(async () => {
    await service.stop();
    expect(service.stderr()).not.toContain('"level":50');
  });

  const report = (ids: readonly string[]) => reportTokens({ service, tenantId }, ids);
  const rows = () => page.locator('table.log [data-id]');
  const state = () => page.locator('.state');
  const home = async (): Promise<void> => {
    await page.goto(`${service.url}/portal/logs?source=all`);
    await rows().first().waitFor();
  };
  const pick = async (label: string, text: string): Promise<void> => {
    await page.getByLabel(label, { exact: true }).fill(text);
    await page.keyboard.press('Enter');
  };
  const detail = () => page.getByRole('complementary', { name: 'Details of the event' });
  const filterBy = (what: string) =>
    detail()
      .getByRole('button', { name: `Filter by this ${what}` })
      .click();
  const waitForRows = (count: number) => until(async () => (await rows().count()) === count);

  it('keeps the key from scripts, addresses and the page', async () => {
    const seen = (await page.evaluate(`({ cookie: document.cookie,
      storage: localStorage.length + sessionStorage.length,
      html: document.documentElement.outerHTML,
      address: location.href,
    })`)) as { cookie: string; storage: number; html: string; address: string };
    expect([seen.cookie, seen.storage]).toEqual(['', 0]);
    expect(seen.html + seen.address).not.toContain(service.key.slice(4));
  });

  it('shows rows newest first, and more as the reader scrolls', async () => {
    await home();
    expect(await rows().first().innerText()).toContain('many-299');
    const before = await rows().count();
    await page.locator('.list').evaluate((list) => list.scrollTo(0, list.scrollHeight));
    await until(async () => (await rows().count()) > before);
  });

  it('filters by controls; the filter is in the address and can be taken away', async () => {
    await home();
    await pick('Entity type', 'tena');
    await waitForRows(3);
    expect(new URL(page.url()).search).toBe('?entity_type=tenant');
    await pick('Operation', 'update');
    await waitForRows(2);
    expect(new URL(page.url()).searchParams.get('operation')).toBe('update');
    await page.reload();
    await waitForRows(2);
    expect(await page.getByLabel('Operation').inputValue()).toBe('Update');
    await pick('Operation', 'All');
    await waitForRows(3);
    await page.goBack();
    await waitForRows(2);
    await pick('Actor', 'operator');
    await page.getByText('No rows match these filters.').waitFor();
    await page.getByRole('link', { name: 'Clear the filters' }).click();
    await until(async () => (await rows().count()) > 3);
    await page.getByRole('combobox', { name: 'Time', exact: true }).selectOption('Last hour');
    await page.getByText(/^[0-9]+ rows?$/).waitFor();
    expect(new URL(page.url()).search).toBe('?range=1h');
  });

  it('begins with the changes, counts each scope, and remembers which was chosen', async () => {
    const scopes = page.getByRole('navigation', { name: 'Rows' });
    await page.goto(`${service.url}/portal/logs`);
    await scopes.getByRole('link', { name: /^Facts [0-9,]{3,}$/ }).waitFor();
    expect(await scopes.locator('[aria-current]').innerText()).toMatch(/^Changes [0-9]+$/);
    await scopes.getByRole('link', { name: 'Facts' }).click();
    await rows().filter({ hasText: 'many-299' }).waitFor();
    const asked = page.waitForRequest(/\/portal\/api\/logs\?entity_id=many-3/);
    await page.goto(`${service.url}/portal/logs?entity_id=many-3`);
    expect((await asked).url()).not.toContain('source');
    await page.goto(`${service.url}/portal/logs`);
    await rows().filter({ hasText: 'many-299' }).waitFor();
    await scopes.getByRole('link', { name: 'Changes' }).click();
    await rows().filter({ hasText: 'created' }).first().waitFor();
  });

  it('counts those of the other scopes, too, while it is live', async () => {
    const other = await openWindow(browser);
    const facts = other.getByRole('navigation', { name: 'Rows' }).getByRole('link', { name: 'Facts' });
    const countOf = async () => Number((await facts.innerText()).replaceAll(/\D/g, ''));
    await other.clock.install();
    await signInTo(other, service.url, service.key, 'logs');
    await until(async () => (await countOf()) > 0);
    await until(async () => (await other.locator('.state').innerText()) === 'Live');
    const before = await countOf();
    await report(['elsewhere-1']);
    await until(async () => {
      await other.clock.runFor(5_000);
      return (await countOf()) === before + 1;
    });
    await other.context().close();
  });

  it('moves no field, whatever is chosen', async () => {
    await home();
    const fields = page.getByRole('group', { name: 'Filters' }).locator('label');
    const places = () =>
      fields.evaluateAll((all) => all.map((field) => JSON.stringify(field.getBoundingClientRect())));
    const before = await places();
    await page.goto(`${service.url}/portal/logs?entity_type=token&entity_id=many-7&operation=create`);
    await page.getByTitle('No longer many-7').waitFor();
    expect(await places()).toEqual(before);
    await page.getByTitle('No longer many-7').click();
    await page.waitForURL(({ search }) => search === '?operation=create');
  });

  it('has a tick at each of a few minutes', async () => {
    const from = new Date(Date.now() - 4 * 60_000).toISOString();
    await page.goto(`${service.url}/portal/logs?start_date=${from}&source=all`);
    await page.getByRole('slider').waitFor();
    expect(await page.locator('.ticks span').count()).toBeGreaterThanOrEqual(3);
    expect(await page.locator('.ticks span').first().innerText()).toMatch(/^\d\d:\d\d$/);
  });

  const find = async (text: string): Promise<void> => {
    await page.evaluate('document.activeElement.blur()');
    await page.keyboard.press('/');
    await page.keyboard.insertText(text);
    await page.keyboard.press('Enter');
  };
  const toldThat = (text: RegExp | string) => page.getByRole('status').filter({ hasText: text }).waitFor();

  it('tells what was pasted, or what it was tried as', async () => {
    await home();
    await find(' rename-1 ');
    await page.waitForURL((url) => url.search === '?trace_id=rename-1');
    await toldThat('This is the request rename-1: 1 row.');
    await find('many-7');
    await page.waitForURL((url) => url.search === '?entity_id=many-7');
    await toldThat('This is the token many-7: 1 row.');
    await waitForRows(1);
    const event = (await rows().first().getAttribute('data-id')) ?? '';
    await find('management');
    await toldThat('This is the application Management');
    await page.getByRole('link', { name: /^It is also an actor/ }).waitFor();
    await find('ANAGEM');
    await toldThat('This is the application Management');
    await find(event);
    await toldThat('This is an event; it is open.');
    await detail().waitFor();
    await find('nothing-of-it');
    await toldThat(
      'Nothing is called nothing-of-it: it was tried as an entity, a request and the name of an Application.',
    );
    expect(new URL(page.url()).searchParams.get('event')).toBe(event);
    // What found nothing is still there to be corrected, and gone as soon as somebody types something else.
    expect(await page.getByLabel('Find').inputValue()).toBe('nothing-of-it');
    await find('many-7');
    await toldThat('This is the token many-7: 1 row.');
  });

  it('never sends a key that is pasted, names it by its digest, and revokes it', async () => {
    const { id, key, keyId } = await by.newApplication(tenantId, 'private', 'token:read');
    const sent: string[] = [];
    const note = (request: Request): void => void sent.push(`${request.url()} ${request.postData() ?? ''}`);
    page.on('request', note);
    await home();
    await find(`curl -H 'SVC-API-KEY: ${key}'`);
    await toldThat(
      /This is the key without a name of A private one, active\. It was not used in the last 30 days\./,
    );
    expect(await page.locator('#search').inputValue()).toBe('');
    await page.getByRole('button', { name: 'Revoke …' }).click();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Revoke the key' }).click();
    await toldThat(/revoked\./);
    await until(async () => (await page.evaluate('document.activeElement.innerText')) === 'Log');
    expect((await ask(`${service.url}/applications/key`, { key })).status).toBe(401);
    await page.getByRole('link', { name: 'What it was used for' }).click();
    await page.waitForURL((url) => url.searchParams.get('entity_id') === keyId);
    await find(key.slice(0, 40));
    await toldThat('This looks like a part of a key. It was not sent; paste the whole one.');
    await page.evaluate(
      `history.pushState(null, '', '?trace_id=${key}'); dispatchEvent(new PopStateEvent('popstate'))`,
    );
    await until(() => !page.url().includes('key_'));
    page.off('request', note);
    expect(sent.filter((text) => text.includes('/keys/find'))).toHaveLength(1);
    expect(sent.filter((text) => text.includes(key.slice(0, 30)))).toEqual([]);
    expect(sent.filter((text) => text.includes(`/applications/${id}/keys/${keyId} `))).toHaveLength(1);
  });

  it('means the day of the viewer by a day', async () => {
    const context = await browser.newContext({ timezoneId: 'Asia/Tokyo' });
    const other = await openTab(context);
    await signInTo(other, service.url, service.key, 'logs');
    const asked = other.waitForRequest(/\/portal\/api\/logs\?start_date/);
    await other.goto(`${service.url}/portal/logs?start_date=2026-01-31`);
    expect(new URL((await asked).url()).searchParams.get('start_date')).toBe('2026-01-30T15:00:00.000Z');
    expect(await other.getByLabel(/^From/).inputValue()).toBe('2026-01-31T00:00');
    await other.goto(`${service.url}/portal/logs?range=7d`);
    const columns = other.getByRole('slider', { name: 'Columns of rows' });
    await columns.press('Home');
    const days: string[] = [];
    for (let i = 0; i < 8; i += 1) {
      days.push((await columns.getAttribute('aria-valuetext')) ?? '');
      await columns.press('ArrowRight');
    }
    const today = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'Asia/Tokyo' }).format();
    expect(new Set(days).size).toBeGreaterThanOrEqual(7);
    expect(days.at(-1)).toContain(today);
    await context.close();
  });

  it('says in a row what has changed', async () => {
    await page.goto(`${service.url}/portal/logs?trace_id=rename-1`);
    const row = rows().first();
    await until(async () => (await row.innerText()).includes(NASTY));
    expect(await row.locator('ins').innerText()).toBe(NASTY);
    const { id } = await by.newApplication(tenantId, 'private', 'token:read');
    const keys = `${service.url}/applications/${id}/keys`;
    const made = await ask(keys, { method: 'POST', key: service.key, body: { name: 'ci' } });
    await page.goto(`${service.url}/portal/logs?entity_type=key&entity_id=${made.json.id}`);
    await page.getByText('A private one · key ci added').waitFor();
    expect((await ask(`${keys}/${made.json.id}`, { method: 'DELETE', key: service.key })).status).toBe(204);
    await page.getByText('A private one · key ci revoked').waitFor();
    const gone = { method: 'DELETE', key: service.key };
    expect((await ask(`${service.url}/applications/${id}`, gone)).status).toBe(204);
    await page.reload();
    await page.getByText(/ · key ci revoked$/).waitFor();
  });

  it('says who says so, by which rows can be chosen, and what the actor was called then', async () => {
    const maker = await by.newOwner(tenantId);
    const own = `${service.url}/applications/${maker.id}`;
    const renamed = { name: 'Called otherwise', type: 'management', permissions: ['log:read'] };
    expect((await ask(own, { method: 'PUT', key: maker.key, body: renamed })).status).toBe(200);
    const claimed = { entityType: 'application', operation: 'update', message: 'Application updated' };
    await reportFacts(service.folder, tenantId, [fact('ActivityReported', maker.id, { data: claimed })]);
    await allProjected(service);
    await page.goto(
      `${service.url}/portal/logs?entity_type=application&entity_id=${maker.id}&operation=update`,
    );
    await waitForRows(2);
    expect(await rows().locator('td.actor').allInnerTexts()).toEqual(['reported', 'A management one']);
    await rows().last().click();
    await detail().getByText('Changes', { exact: true }).waitFor();
    await detail().getByText('application A management one').waitFor();
    await page.goto(`${service.url}/portal/logs?entity_id=${maker.id}`);
    await page.getByRole('link', { name: 'Facts' }).click();
    await waitForRows(1);
    expect(new URL(page.url()).searchParams.get('source')).toBe('fact');
    await page.goto(`${service.url}/portal/logs?source=decision`);
    await chart().waitFor();
    expect(await rows().locator('td.actor').filter({ hasText: 'reported' }).count()).toBe(0);
  });

  it('opens a row beside the list, by keyboard, with the fields before and after', async () => {
    await page.goto(`${service.url}/portal/logs?entity_type=tenant`);
    await rows().nth(1).waitFor();
    const focused = () =>
      page.evaluate<string>('document.activeElement.closest("[data-id], aside")?.tagName');
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await detail().getByRole('columnheader', { name: 'Before' }).waitFor();
    expect(await focused()).toBe('ASIDE');
    const text = await detail().innerText();
    expect(text).toContain(NASTY);
    expect(text).toContain('rename-1');
    expect(text).toContain('127.0.0.1');
    expect(await detail().locator('del').first().innerText()).not.toBe('');
    expect(await page.locator('img').count()).toBe(0);
    await page.keyboard.press('j');
    await detail().getByText('Fingerprint tokens').first().waitFor();
    expect(await focused()).toBe('TR');
    await page.keyboard.press('k');
    await filterBy('request');
    await waitForRows(1);
    expect(new URL(page.url()).search).toBe('?trace_id=rename-1');
    await page.goBack();
    await detail().waitFor();
    await page.keyboard.press('Escape');
    await detail().waitFor({ state: 'detached' });
    await rows().first().locator('td.time').click();
    await detail().waitFor();
    await detail().getByRole('link', { name: 'Close' }).click();
    await until(async () => (await focused()) === 'TR');
    expect(await rows().first().getByRole('link').count()).toBe(1);
  });

  const chart = () => page.getByRole('group', { name: 'Rows over time' });

  it('counts rows over time, and zooms in to the newest bar, which stays live', async () => {
    await home();
    const columns = page.getByRole('slider');
    await columns.waitFor();
    expect(await columns.getAttribute('aria-valuetext')).toMatch(/: [1-9][0-9]+ rows$/);
    const { x, y, width } = (await columns.boundingBox()) ?? { x: 0, y: 0, width: 0 };
    await page.mouse.move(x + width * 0.5, y + 20);
    await page.mouse.down();
    await page.mouse.move(x + width - 2, y + 20, { steps: 4 });
    await page.mouse.up();
    await until(async () => new URL(page.url()).searchParams.has('start_date'));
    expect(new URL(page.url()).searchParams.has('end_date')).toBe(false);
    await until(async () => (await state().innerText()) === 'Live');
    await page.getByLabel(/^From/).waitFor();
  });

  it('reads a column by a tap and by keys, and zooms in, out and to the time before', async () => {
    await home();
    const columns = page.getByRole('slider');
    await columns.waitFor();
    const before = page.url();
    const { x, width } = (await columns.boundingBox()) ?? { x: 0, width: 0 };
    const touch = { pointerType: 'touch', pointerId: 5, clientX: x + width / 2 };
    await columns.dispatchEvent('pointerdown', touch);
    await columns.dispatchEvent('pointerup', touch);
    await page
      .locator('.readout')
      .filter({ hasText: /: [0-9]+ rows?$/ })
      .waitFor();
    expect(page.url()).toBe(before);
    await columns.press('End');
    await columns.press('Enter');
    await page.waitForURL((url) => url.searchParams.has('start_date'));
    const start = () => new URL(page.url()).searchParams.get('start_date') ?? '';
    const zoomed = start();
    await page.getByRole('button', { name: 'Earlier' }).click();
    await until(() => start() < zoomed);
    expect(new URL(page.url()).searchParams.get('end_date')).toBe(zoomed);
    await page.getByRole('button', { name: 'Later' }).click();
    await until(() => start() === zoomed);
    await page.getByRole('button', { name: 'Zoom out' }).click();
    await until(() => start() < zoomed);
  });

  it('counts the rows of an entity or an operation, and says why not those of both', async () => {
    await page.goto(`${service.url}/portal/logs?entity_id=many-1`);
    await chart().waitFor();
    await page.getByText('1 row', { exact: true }).waitFor();
    await page.goto(`${service.url}/portal/logs?operation=use`);
    await chart().waitFor();
    await page.goto(`${service.url}/portal/logs?operation=use&entity_id=many-1`);
    await page.getByText('No chart:').waitFor();
    expect(await page.getByRole('slider').count()).toBe(0);
  });

  it('shows new rows as they come, and never while somebody reads further down or in a row', async () => {
    await home();
    await until(async () => (await state().innerText()) === 'Live');
    await report(['live-1']);
    await rows().filter({ hasText: 'live-1' }).waitFor();
    await page.locator('.list').evaluate((list) => list.scrollTo(0, 400));
    await until(async () => (await state().innerText()) === 'Paused');
    const top = await page.locator('.list').evaluate((list) => list.scrollTop);
    const text = await rows().nth(12).innerText();
    await report(['live-2', 'live-3']);
    await until(async () => (await state().innerText()) === 'Paused, 2 new');
    expect(await rows().nth(12).innerText()).toBe(text);
    expect(await page.locator('.list').evaluate((list) => list.scrollTop)).toBe(top);
    await page.getByRole('button', { name: 'Show new' }).click();
    await rows().filter({ hasText: 'live-3' }).waitFor();
    await page.getByText('2 new', { exact: true }).waitFor();
    await until(async () => (await state().innerText()) === 'Live');
  });

  it('shows new rows of the filter only', async () => {
    await page.goto(`${service.url}/portal/logs?entity_type=card`);
    await until(async () => (await state().innerText()) === 'Live');
    const before = await rows().count();
    await report(['not-a-card']);
    await reportFacts(service.folder, tenantId, [fact('CardUsed', 'card-live')]);
    await rows().filter({ hasText: 'card-live' }).waitFor();
    expect(await rows().count()).toBe(before + 1);
  });

  const save = async (link: Locator): Promise<string> => {
    const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
    return readFileSync(await download.path(), 'utf8');
  };

  it('says which row an event is, and saves its proof and a checkpoint', async () => {
    await page.goto(`${service.url}/portal/logs?trace_id=rename-1`);
    await rows().first().click();
    const told = await detail()
      .getByText(/^Row [0-9,]+ of [0-9,]+, proven/)
      .innerText();
    const { text: key } = await ask(`${service.url}/tenants/self/evidence/key`, { key: service.key });
    const link = (name: string) => page.getByRole('link', { name, exact: true });
    const { index, checkpoint } = readProof(await save(link('proof')));
    const { size } = openCheckpoint(checkpoint, key);
    expect(told.replaceAll(',', '')).toContain(`Row ${index + 1} of ${size} proven`);
    expect(await save(link('checkpoint'))).toBe(checkpoint);
    expect(openCheckpoint(await save(link('Checkpoint')), key).size).toBeGreaterThanOrEqual(size);
    expect(await accessibilityFaults(page)).toEqual([]);
  });

  it('exports exactly the filter', async () => {
    await page.goto(`${service.url}/portal/logs?entity_type=tenant`);
    await waitForRows(3);
    const link = page.getByRole('link', { name: 'Export NDJSON' });
    const day = new Date().toISOString().slice(0, 10);
    const named = (words: string) => new RegExp(`/img-src-x-[a-z0-9-]+-${words}-${day}.ndjson\\?`);
    expect(await link.getAttribute('href')).toMatch(named('tenant'));
    const ndjson = (await save(link)).trim().split('\n');
    expect(ndjson).toHaveLength(4);
    expect(JSON.parse(ndjson.at(-1) ?? '').trailer).toMatchObject({
      events: 3,
      filter: { entity: { type: 'tenant' } },
    });
    expect((await save(page.getByRole('link', { name: 'Export CSV' }))).trim().split('\r\n')).toHaveLength(4);
    await page.goto(`${service.url}/portal/logs?source=decision`);
    await rows().first().waitFor();
    expect(await link.getAttribute('href')).toMatch(named('changes'));
  });

  it('says why an export is refused, and saves nothing', async () => {
    const { id, key } = await by.newApplication(tenantId, 'management', 'log:read', 'tenant:read');
    const other = await openWindow(browser, FAILED_REQUESTS);
    await signInTo(other, service.url, key, 'logs');
    await other.goto(`${service.url}/portal/logs?end_date=2020-01-01`);
    await other.getByText('No rows match these filters.').waitFor();
    const body = { name: 'No longer', permissions: ['tenant:read'] };
    const put = { method: 'PUT', key: service.key, body };
    expect((await ask(`${service.url}/applications/${id}`, put)).status).toBe(200);
    const saved: unknown[] = [];
    other.on('download', (download) => saved.push(download));
    await other.getByRole('link', { name: 'Export NDJSON' }).click();
    expect(await other.getByRole('alert').innerText()).toContain('log:read');
    expect([saved, new URL(other.url()).pathname]).toEqual([[], '/portal/logs']);
  });

  it('writes times as the reader likes, on every page and after a reload', async () => {
    await home();
    const utc = (time: string) => /^\d\d? \w{3} \d{4}, \d\d:\d\d$/.test(time);
    await page.getByLabel('Times').selectOption('utc');
    const first = () => page.locator('time').first();
    const at = (await first().getAttribute('datetime')) ?? '';
    await until(async () => (await first().innerText()).includes(at.slice(11, 16)));
    expect(new URL(page.url()).search).toBe('?source=all');
    await page.getByRole('link', { name: 'Tenant', exact: true }).click();
    await until(async () => utc(await page.locator('time').first().innerText()));
    await page.reload();
    await page.locator('time').first().waitFor();
    await page.getByLabel('Times').selectOption('local');
  });

  it('names both when something happened and when it was recorded, and nothing is in the future', async () => {
    const occurredAt = new Date(Date.now() - 3 * 86_400_000).toISOString();
    await reportFacts(service.folder, tenantId, [fact('TokenUsed', 'late', { data: { occurredAt } })]);
    await allProjected(service);
    await page.clock.setFixedTime(Date.now() - 5_000);
    await page.goto(`${service.url}/portal/logs?entity_id=late`);
    await page.getByText(', happened ').waitFor();
    expect(await rows().first().locator('td.time time').getAttribute('title')).toMatch(/, now$/);
    await rows().first().click();
    const told = page.getByRole('complementary').locator('dl.facts > div');
    await told.filter({ hasText: /^Recorded/ }).waitFor();
    await told.filter({ hasText: /^Happened/ }).waitFor();
    await page.clock.setFixedTime(Date.now());
  });

  it.each(['light', 'dark'] as const)(
    'has nothing that axe-core objects to in %s mode',
    async (colorScheme) => {
      await page.emulateMedia({ colorScheme });
      await page.goto(`${service.url}/portal/logs?entity_type=tenant`);
      await rows().first().locator('a.open-row').click();
      await page.getByRole('columnheader', { name: 'Before' }).waitFor();
      expect(await accessibilityFaults(page)).toEqual([]);
      await home();
      expect(await accessibilityFaults(page)).toEqual([]);
    },
  );

  it('says so when the key is revoked', async () => {
    const { key, keyId } = await by.newApplication(tenantId, 'management', 'log:read');
    const other = await openWindow(browser, FAILED_REQUESTS);
    await signInTo(other, service.url, key, 'logs');
    await until(async () => (await other.locator('.state').innerText()) === 'Live');
    const exporting = await openTab(other.context(), FAILED_REQUESTS);
    await exporting.goto(`${service.url}/portal/logs?end_date=2020-01-01`);
    await exporting.getByRole('link', { name: 'Export CSV' }).waitFor();
    await exporting.waitForLoadState('networkidle');
    await by.write(tenantId, revokeKey(keyId));
    expect(await other.getByRole('alert').innerText()).toContain('Your session has ended');
    await exporting.getByRole('link', { name: 'Export CSV' }).click();
    expect(await exporting.getByRole('alert').innerText()).toContain('Your session has ended');
    await other.getByLabel('API key').fill('key_wrong');
    await other.getByRole('button', { name: 'Sign in' }).click();
    await other.getByText('This key is not accepted').waitFor();
  });
});
