import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { newKey } from '../../src/ledger/api-key';
import { beside } from '../support/beside';
import { crowdAt } from '../support/crowd';
import type { AskOptions } from '../support/http';
import { fewAtOnce } from '../support/operator';
import { reported } from '../support/reported';
import { serviceProcess, type ServiceProcess } from '../support/service';

/** `npm run campaign -- requests` sets more. */
const CASES = Number(process.env['CASES'] ?? 500);
const WARM_UP = 1_000;
const REQUESTS = CASES * 2;
const MAX_GROWTH = 2_000_000;

interface Memory {
  readonly heap_used: number;
  readonly external: number;
  readonly rss: number;
}

const memoryOf = async (service: ServiceProcess) => (await reported(service, 'heap_used')) as Memory;

describe('memory', () => {
  it(
    `is the same after ${REQUESTS} more requests of every kind`,
    async () => {
      const reporter = join(__dirname, '..', 'support', 'heap-reporter.js');
      const service = await serviceProcess({ NODE_OPTIONS: `--require ${reporter}` });
      const by = await beside(service);
      const { tenantId } = await by.newTenant();
      const manager = await by.newApplication(
        tenantId,
        'management',
        'tenant:read',
        'tenant:update',
        'log:read',
      );
      const limited = await by.newApplication(tenantId, 'public', 'token:create');
      const crowd = crowdAt(service.url);
      const kinds: readonly ((n: number) => readonly [string, AskOptions])[] = [
        () => ['/tenants/self', { key: manager.key }],
        (n) => [`/logs?size=5&entity_id=e${n}`, { key: manager.key }],
        () => ['/permissions', { key: manager.key, headers: { 'SVC-TRACE-ID': randomUUID() } }],
        () => ['/tenants/self', { key: limited.key }],
        () => ['/tenants/self', { key: newKey(randomUUID()).key }],
        () => ['/tenants/self', { key: newKey(randomUUID()).key, method: 'PUT', body: { name: 'B' } }],
        () => [`/${randomUUID()}`, { key: manager.key }],
        () => [`/tenants/self?${randomUUID()}[]=1`, { key: manager.key }],
        (n) => ['/tenants/self', { key: manager.key, method: 'PUT', body: { name: n } }],
        () => ['/problems/not_found', { key: 'key_nonsense' }],
      ];
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
      const before = await memoryOf(service);
      await send(REQUESTS);
      const after = await memoryOf(service);
      const grown = after.heap_used + after.external - before.heap_used - before.external;
      console.log(
        `memory: ${WARM_UP} + ${REQUESTS} requests, heap ${before.heap_used} → ${after.heap_used}, rss ${before.rss} → ${after.rss}`,
      );
      expect(grown).toBeLessThan(MAX_GROWTH);
      crowd.close();
      expect(await service.stop()).toBe(0);
    },
    60_000 * Math.ceil(CASES / 1_000),
  );
});
