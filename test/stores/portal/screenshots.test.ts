import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { permissionsOf } from '../../../src/domain/authority';
import type { NewEvent } from '../../../src/event-log/event-log';
import { newKey } from '../../../src/ledger/api-key';
import { beside, type Beside } from '../../support/beside';
import { describeInBrowser, FAILED_REQUESTS, launch, openWindow, signInTo } from '../../support/browser';
import { allProjected, startService, type Service } from '../../support/service';

const DOCS = join(__dirname, '..', '..', '..', '..', 'docs', 'portal');
const MAX_BYTES = 150_000;
const DAY_MS = 86_400_000;
const NOW = Date.now();
const daysAgo = (days: number): string => new Date(NOW - days * DAY_MS).toISOString();

const TENANT = randomUUID();
const OPERATOR = '00000000-0000-0000-0000-000000000000';
const [CONSOLE, CHECKOUT, BILLING, REPORTS] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];

interface Past {
  readonly days: number;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly by?: string;
  readonly changes?: readonly unknown[];
}

const key = (applicationId: string, days: number, more: Readonly<Record<string, unknown>> = {}) => {
  const made = newKey(TENANT);
  const { keyId, digest } = made.input;
  return {
    key: made.key,
    keyId,
    event: { days, type: 'KeyAdded', data: { keyId, applicationId, digest, ...more } },
  };
};

const application = (
  id: string,
  days: number,
  name: string,
  type: string,
  permissions: readonly string[],
): Past => ({
  days,
  type: 'ApplicationCreated',
  data: { applicationId: id, name, applicationType: type, permissions },
});

/** What the pictures show: a tenant with a past. */
const story = () => {
  const settings = { fingerprintTokens: false, deduplicateTokens: false };
  const all = permissionsOf('management').map(({ type }) => type);
  const own = key(CONSOLE, 31, { name: 'Robin' });
  const old = key(BILLING, 30);
  const past: readonly Past[] = [
    {
      days: 31,
      type: 'TenantCreated',
      data: { name: 'Acme', ownerId: OPERATOR, settings, includedMonthlyActiveTokens: 500 },
    },
    application(CONSOLE, 31, 'Console', 'management', all),
    own.event,
    application(CHECKOUT, 30, 'Checkout', 'public', ['token:create']),
    key(CHECKOUT, 30, { name: 'web shop' }).event,
    application(BILLING, 30, 'Billing', 'private', ['token:read', 'token:use']),
    old.event,
    application(REPORTS, 30, 'Nightly reports', 'private', ['token:read']),
    key(REPORTS, 30, { name: 'cron', expiresAt: daysAgo(-30) }).event,
    { days: 12, type: 'TenantUpdated', data: { name: 'Acme Payments', settings }, by: CONSOLE },
    { ...key(BILLING, 9, { name: 'second region' }).event, by: CONSOLE },
    { days: 8, type: 'KeyRevoked', data: { keyId: old.keyId, applicationId: BILLING }, by: CONSOLE },
    {
      days: 0.001,
      type: 'ApplicationUpdated',
      data: {
        applicationId: BILLING,
        name: 'Billing',
        permissions: ['token:read', 'token:use', 'token:update'],
      },
      by: CONSOLE,
    },
    {
      days: 0.0005,
      type: 'TenantUpdated',
      data: { name: 'Acme Payments', settings: { ...settings, deduplicateTokens: true } },
      by: CONSOLE,
      changes: [{ field: 'settings.deduplicate_tokens', from: false, to: true }],
    },
  ];
  return { past, key: own.key, keyId: own.keyId };
};

interface Told {
  readonly stream: 'tenant' | 'activity';
  readonly event: NewEvent & { readonly recordedAt: string };
}

const FACTS = [
  ['TokenCreated', CHECKOUT],
  ['TokenRead', REPORTS],
  ['CardCreated', CHECKOUT],
  ['TokenUsed', BILLING],
  ['CardUsed', BILLING],
] as const;

/** More and more each day. */
const reported = (): readonly Told[] =>
  Array.from({ length: 900 }, (_, i) => {
    const [type, id] = FACTS[i % FACTS.length]!;
    const at = daysAgo(30 * (1 - Math.sqrt((i + 1) / 901)));
    const metadata = { version: 1, at, actor: { type: 'application', id }, traceId: randomUUID() };
    const data = { entityId: `${type.slice(0, 4).toLowerCase()}_${i}`, occurredAt: at };
    return { stream: 'activity', event: { id: randomUUID(), type, data, metadata, recordedAt: at } };
  });

/** In the order of their times: the log of a tenant never runs backwards. */
const toldIn = (past: readonly Past[], keyId: string): readonly Told[] => {
  const client = { address: '203.0.113.7', userAgent: 'Mozilla/5.0' };
  const decided = past.map(({ days, type, data, by, changes = [] }): Told => {
    const at = daysAgo(days);
    const metadata =
      by === undefined
        ? { version: 1, at, actor: { type: 'user', id: OPERATOR } }
        : {
            version: 1,
            at,
            actor: { type: 'application', id: by },
            keyId,
            traceId: randomUUID(),
            client,
            changes,
          };
    return { stream: 'tenant', event: { id: randomUUID(), type, data, metadata, recordedAt: at } };
  });
  return [...decided, ...reported()].toSorted((a, b) => (a.event.recordedAt < b.event.recordedAt ? -1 : 1));
};

/** Returns the key to sign in with. */
const tell = async ({ log, streams }: Beside): Promise<string> => {
  const { past, key: own, keyId } = story();
  const ends = { tenant: -1, activity: -1 };
  for (const { stream, event } of toldIn(past, keyId)) {
    const end = ends[stream];
    await log.append(streams[stream](TENANT), [event], end < 0 ? 'no_stream' : end, 20_000);
    ends[stream] += 1;
  }
  return own;
};

/** `npm run screenshots` writes them into the docs. */
describeInBrowser('the pictures in the docs', () => {
  let browser: Browser;
  let service: Service;
  let page: Page;
  beforeAll(async () => {
    [browser, service] = await Promise.all([launch(), startService()]);
    const own = await tell(await beside(service));
    await allProjected(service);
    page = await openWindow(browser, FAILED_REQUESTS);
    await page.setViewportSize({ width: 1200, height: 700 });
    await signInTo(page, service.url, own);
  });

  const open = async (path: string, ...texts: readonly string[]): Promise<void> => {
    await page.goto(`${service.url}/portal/${path}`);
    for (const text of texts) await page.getByText(text).first().waitFor();
  };

  it.each([
    ['log', 'light', () => open('logs', 'deduplicate_tokens', 'Live')],
    [
      'event',
      'dark',
      async () => {
        await open('logs?entity_type=tenant', 'deduplicate_tokens');
        await page.locator('a.open-row').first().click();
        await page.getByText('Before and after').waitFor();
      },
    ],
    ['as-of', 'light', () => open(`applications?as_of=${daysAgo(10)}`, 'Since then')],
  ] as const)('are small: %s in %s mode', async (name, colorScheme, show) => {
    await page.emulateMedia({ colorScheme });
    await show();
    const picture = await page.screenshot();
    expect(picture.length).toBeLessThan(MAX_BYTES);
    if (process.env['WRITE_DOCS'] === undefined) return;
    mkdirSync(DOCS, { recursive: true });
    writeFileSync(join(DOCS, `${name}.png`), picture);
  });
});
