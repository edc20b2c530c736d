import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import type { Beside } from '../../support/beside';
import {
  accessibilityFaults,
  describeInBrowser,
  FAILED_REQUESTS,
  openWindow,
  signInTo,
} from '../../support/browser';
import { ask } from '../../support/http';
import { openPortal } from '../../support/portal';
import type { Service } from '../../support/service';
import { until } from '../../support/waiting';

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Passes everything on, except the first answer to a POST to this path: there the connection breaks. */
const losingProxy = async (to: string, path: string) => {
  const keys: string[] = [];
  const sockets = new Set<Socket>();
  const server: Server = createServer((client) => {
    const upstream = connect(Number(new URL(to).port), '127.0.0.1');
    let isLosing = false;
    for (const socket of [client, upstream]) sockets.add(socket.on('error', () => undefined));
    client.on('data', (data) => {
      const text = data.toString('latin1');
      if (text.startsWith(`POST ${path} `)) {
        keys.push(/^idempotency-key: (.*)\r$/im.exec(text)?.[1] ?? 'none');
        isLosing = keys.length === 1;
      }
      upstream.write(data);
    });
    upstream.on('data', (data) => (isLosing ? client.resetAndDestroy() : client.write(data)));
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = (): void => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { url, keys, close };
};

describeInBrowser('what the portal writes', () => {
  let browser: Browser;
  let service: Service;
  let by: Beside;
  let page: Page;
  beforeAll(async () => {
    ({ browser, service, by, page } = await openPortal({ expected: FAILED_REQUESTS }));
  });

  const open = (name: string) => page.goto(`${service.url}/portal/${name}`);
  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const dialog = (name: string) => page.getByRole('dialog', { name });
  const alert = (hasText: string | RegExp) => page.getByRole('alert').filter({ hasText });
  const get = async (path: string) => (await ask(`${service.url}${path}`, { key: service.key })).json;
  const named = async (name: string) =>
    (
      (await get('/applications?size=100')).data as readonly { readonly name: string; readonly id: string }[]
    ).filter((one) => one.name === name);

  it('is done once if a request is repeated whose answer was lost, and the lost key is replaced', async () => {
    const proxy = await losingProxy(service.url, '/portal/api/applications');
    const other = await openWindow(browser, FAILED_REQUESTS);
    await signInTo(other, proxy.url, service.key);
    await other.goto(`${proxy.url}/portal/applications`);
    await other.getByRole('button', { name: 'New Application …' }).click();
    await other.getByRole('dialog').getByLabel('Name', { exact: true }).fill('Once');
    const create = other.getByRole('button', { name: 'Create', exact: true });
    await create.click();
    const lost = other.getByRole('dialog', { name: 'The key was lost' });
    // A browser repeats only what it had sent on a connection that was open already.
    const unknown = other.getByRole('alert').filter({ hasText: 'It is not known whether this was saved' });
    await lost.or(unknown).first().waitFor();
    if (await unknown.isVisible()) await create.click();
    await lost.getByText('It was created, but its key was lost: make a new one.').waitFor();
    expect(await accessibilityFaults(other)).toEqual([]);
    expect(proxy.keys).toEqual([expect.stringMatching(UUID), proxy.keys[0]]);
    const [made, ...more] = await named('Once');
    expect(more).toEqual([]);
    await lost.getByRole('button', { name: 'Make a new one' }).click();
    await other.getByRole('dialog', { name: 'New key' }).getByRole('button', { name: 'Create' }).click();
    const key = (await other.locator('pre.key').innerText()).trim();
    expect((await ask(`${service.url}/applications/key`, { key })).json.id).toBe(made?.id);
    await other.close();
    proxy.close();
  });

  it('has one idempotency key until it has succeeded, and another after an edit', async () => {
    const { id } = await by.newApplication(await by.tenantId(), 'private');
    const keys: (string | undefined)[] = [];
    let lost = 2;
    await page.route('**/portal/api/**', async (route) => {
      if (route.request().method() === 'GET') return route.continue();
      keys.push(route.request().headers()['idempotency-key']);
      lost -= 1;
      if (lost < 0) return route.continue();
      const headers = { ...(await route.request().allHeaders()), 'sec-fetch-site': 'same-origin' };
      if (lost === 0) await route.fetch({ headers });
      return route.abort();
    });
    await open(`applications?id=${id}`);
    await button('New key …').click();
    await dialog('New key').getByLabel('Name').fill('first');
    await dialog('New key').getByRole('button', { name: 'Create' }).click();
    await alert('It is not known whether this was saved').waitFor();
    await dialog('New key').getByLabel('Name').fill('second');
    await dialog('New key').getByRole('button', { name: 'Create' }).click();
    await until(() => keys.length === 2);
    await alert('The service answers again. It is not known whether').waitFor();
    await dialog('New key').getByRole('button', { name: 'Create' }).click();
    await dialog('The key was lost').getByRole('button', { name: 'Make a new one' }).click();
    await dialog('New key').getByRole('button', { name: 'Create' }).click();
    await page.getByLabel('I have kept the key').check();
    await page.keyboard.press('Escape');
    await page.getByRole('row', { name: 'second' }).getByRole('button', { name: 'Revoke …' }).click();
    await dialog('Revoke the key').getByRole('button', { name: 'Revoke the key' }).click();
    await page.getByRole('row', { name: 'second' }).waitFor({ state: 'detached' });
    await until(async () => (await page.evaluate('document.activeElement.innerText')) === 'Keys');
    await button('Edit …').click();
    await dialog('Edit').getByLabel('Name').fill('Edited');
    await button('Save').click();
    await page.getByRole('heading', { name: 'Edited' }).waitFor();
    await page.unrouteAll({ behavior: 'wait' });
    expect(keys).toEqual(Array.from({ length: 6 }, () => expect.stringMatching(UUID)));
    expect([keys[1], new Set(keys).size]).toEqual([keys[2], 5]);
    expect((await get(`/applications/${id}`)).keys).toHaveLength(2);
  });

  it('is nothing while nothing is changed', async () => {
    await open('tenant');
    const { name } = await get('/tenants/self');
    const save = button('Save');
    await save.waitFor();
    expect(await save.isDisabled()).toBe(true);
    await page.getByLabel('Name').fill('Another');
    expect(await save.isEnabled()).toBe(true);
    await page.getByLabel('Name').fill(name as string);
    expect(await save.isDisabled()).toBe(true);
    await page.getByRole('link', { name: 'Applications' }).click();
    await page.getByRole('link', { name: 'Management' }).click();
    await button('Edit …').click();
    expect(await save.isDisabled()).toBe(true);
    await page.keyboard.press('Escape');
    await dialog('Edit').waitFor({ state: 'detached' });
    await until(async () => (await page.evaluate('document.activeElement.innerText')) === 'Edit …');
  });

  it('is not lost by a click, Escape, Back or a reload while it is being typed', async () => {
    await open('usage');
    await page.getByRole('link', { name: 'Tenant', exact: true }).click();
    const name = page.getByLabel('Name', { exact: true });
    await name.fill('Typed');
    const questionAfter = async (leaving: () => Promise<unknown>) => {
      const asked = page.waitForEvent('dialog');
      const left = leaving();
      const question = await asked;
      const answer = async (isDiscarded: boolean): Promise<void> => {
        await (isDiscarded ? question.accept() : question.dismiss());
        await left;
      };
      return { text: question.message(), answer };
    };
    const expectKept = async (leaving: () => Promise<unknown>): Promise<void> => {
      const { text, answer } = await questionAfter(leaving);
      expect(text).toBe('What you have here is not saved yet. Discard it?');
      await answer(false);
      expect(new URL(page.url()).pathname).toBe('/portal/tenant');
      expect(await name.inputValue()).toBe('Typed');
    };
    await expectKept(() => page.getByRole('link', { name: 'Applications' }).click());
    await expectKept(() => page.evaluate('history.back()'));
    await page.getByLabel(/^As of/).fill('2026-01-31T12:00');
    await expectKept(() => page.keyboard.press('Enter'));
    expect(await page.getByLabel(/^As of/).inputValue()).toBe('');
    await expectKept(() => button('Sign out').click());
    const asked = page.waitForEvent('dialog');
    const reloaded = page.evaluate('location.reload()');
    await (await asked).dismiss();
    await reloaded;
    expect(await name.inputValue()).toBe('Typed');
    await (await questionAfter(() => page.evaluate('history.back()'))).answer(true);
    await page.getByRole('heading', { name: 'Usage' }).waitFor();
    expect(new URL(page.url()).pathname).toBe('/portal/usage');

    await open('applications');
    await button('New Application …').click();
    const field = dialog('New Application').getByLabel('Name', { exact: true });
    const escape = () => questionAfter(() => page.keyboard.press('Escape'));
    await field.fill('Typed');
    for (let i = 0; i < 3; i += 1) {
      await (await escape()).answer(false);
      expect(await field.inputValue()).toBe('Typed');
    }
    await (await escape()).answer(true);
    await dialog('New Application').waitFor({ state: 'detached' });
    // A preset alone is typed, too.
    await button('New Application …').click();
    await button('Reading only').click();
    await (await escape()).answer(true);
    await dialog('New Application').waitFor({ state: 'detached' });
    expect(await named('Typed')).toEqual([]);
  });

  it('says whether it was saved if it fails, and no longer once the service answers', async () => {
    await open('tenant');
    await page.getByLabel('Name', { exact: true }).fill('Refused');
    const answer = async (status: number, code: string, headers = {}): Promise<void> => {
      const json = { status, code, title: `It is ${code}.` };
      await page.route('**/portal/api/tenants/self', (route) =>
        route.request().method() === 'PUT' ? route.fulfill({ status, json, headers }) : route.continue(),
      );
      await button('Save').click();
    };
    await answer(400, 'invalid');
    await alert('Nothing was saved: It is invalid.').waitFor();
    await answer(503, 'outcome_unknown');
    await alert('It is outcome_unknown. It is not known whether this was saved').waitFor();
    await page.route('**/portal/api/applications/key', (route) => route.abort());
    await answer(503, 'log_unavailable', { 'Retry-After': '1' });
    await alert('Nothing was saved: It is log_unavailable.').waitFor();
    await page.getByText('Trying again …').waitFor();
    await page.unrouteAll({ behavior: 'wait' });
    await alert('The service answers again. Nothing was saved: send it again.').waitFor();
    await button('Save').click();
    await page.getByText('Saved.', { exact: true }).waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
  });

  it('may be a page that failed: it is asked for again', async () => {
    await page.route('**/portal/api/tenants/self', (route) =>
      route.fulfill({ status: 500, json: { status: 500, code: 'internal', title: 'It is broken.' } }),
    );
    await page.getByRole('link', { name: 'Applications' }).click();
    await page.getByRole('link', { name: 'Tenant', exact: true }).click();
    await alert('It is broken.').waitFor();
    await page.unrouteAll({ behavior: 'wait' });
    await page.getByLabel('Name', { exact: true }).waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
  });
});
