import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { newKey } from '../../src/ledger/api-key';
import { ALL_PERMISSIONS, beside } from '../support/beside';
import { crowdAt } from '../support/crowd';
import type { AskOptions } from '../support/http';
import { fewAtOnce } from '../support/operator';
import { reported } from '../support/reported';
import { serviceProcess } from '../support/service';

const WARM_UP = 4_000;
const REQUESTS = 20_000;
/** A leak of 200 bytes in each request would be 4 MB. The cache of documents in another thread comes and goes. */
const MAX_GROWTH = { http: 3_000_000, others: 5_000_000 };

interface Memory {
  /** What the thread that serves HTTP uses, and what the others do. */
  readonly used: number;
  readonly others: number;
  readonly rss: number;
}

type Kind = (n: number) => readonly [string, AskOptions];

describe('memory', () => {
  it(`is the same after ${REQUESTS} more requests of every kind`, async () => {
    const reporter = join(__dirname, '..', 'support', 'heap-reporter.js');
    const service = await serviceProcess({ NODE_OPTIONS: `--require ${reporter}` });
    const by = await beside(service);
    const { tenantId, key, id } = await by.newTenant('Acme', ALL_PERMISSIONS);
    const limited = await by.newApplication(tenantId, 'public', 'token:create');
    const shop = { name: 'Shop', type: 'private', permissions: ['token:read'] };
    const once = { 'Idempotency-Key': 'once' };
    const kinds: readonly Kind[] = [
      () => ['/tenants/self', { key }],
      (n) => [`/logs?size=5&entity_id=e${n}`, { key }],
      () => ['/permissions', { key, headers: { 'SVC-TRACE-ID': randomUUID() } }],
      () => ['/tenants/self', { key: limited.key }],
      () => ['/tenants/self', { key: newKey(randomUUID()).key }],
      () => ['/tenants/self', { key: newKey(randomUUID()).key, method: 'PUT', body: { name: 'B' } }],
      () => [`/${randomUUID()}`, { key }],
      () => [`/tenants/self?${randomUUID()}[]=1`, { key }],
      (n) => ['/tenants/self', { key, method: 'PUT', body: { name: `Name ${n}` } }],
      (n) => ['/tenants/self', { key, method: 'PUT', body: { name: n } }],
      () => ['/applications', { key, method: 'POST', body: shop, headers: once }],
      (n) => ['/applications', { key, method: 'POST', body: { ...shop, type: `t${n}` } }],
      () => ['/applications?size=5', { key }],
      (n) => [`/applications/${id}`, { key, method: 'PUT', body: { name: `Owner ${n}` } }],
      () => [`/applications/${id}/keys`, { key }],
      (n) => [`/events?limit=5&after=tenant:${n % 3}`, { key }],
      () => [`/events/${randomUUID()}`, { key }],
      () => ['/tenants/self?as_of=tenant:2', { key }],
      () => ['/problems/not_found', { key: 'key_nonsense' }],
    ];
    const crowd = crowdAt(service.url);
    const send = (count: number) =>
      fewAtOnce(
        Array.from({ length: count }, (_, n) => n),
        async (n) => {
          const [path, asking] = kinds[n % kinds.length]!(n);
          expect((await crowd.ask(path, asking)).status).toBeLessThan(500);
        },
        16,
      );
    await send(WARM_UP);
    const before = (await reported(service, 'used')) as Memory;
    await send(REQUESTS);
    const after = (await reported(service, 'used')) as Memory;
    const grown = { http: after.used - before.used, others: after.others - before.others };
    console.log(`memory: ${JSON.stringify({ before, after, grown })}`);
    expect(grown.http).toBeLessThan(MAX_GROWTH.http);
    expect(grown.others).toBeLessThan(MAX_GROWTH.others);
    crowd.close();
    expect(await service.stop()).toBe(0);
  }, 300_000);
});
