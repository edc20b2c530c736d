import { randomUUID } from 'node:crypto';
import { pause } from '../../src/async/clock';
import type { NewTenant } from './beside';
import { closeAfterwards } from './closing';
import { eventsOf } from './events';
import { ask, rename } from './http';
import type { Instances } from './instances';
import { until } from './waiting';

export interface Acknowledged {
  readonly tenantId: string;
  readonly from: number;
  readonly upTo: number;
  readonly by: number;
  readonly isPending: boolean;
}

/** After this long without a response, another instance is asked, with the same idempotency key. */
const PATIENCE_MS = 3_000;
/** What is tried again: the instance is starting, or the same write is still under way on another one. */
const REPEATED: ReadonlySet<number> = new Set([409, 503]);

export const rowsOf = async ({ running }: Pick<Instances, 'running'>, key: string, filter: string) => {
  const response = await ask(`${running[0]!.url}/logs?size=1${filter}`, { key });
  return response.json.pagination.total_items as number;
};

const changesOf = async ({ app: { log, streams } }: Instances, tenantId: string): Promise<number> => {
  const events = await eventsOf(log.readStream(streams.tenant(tenantId)));
  return events.filter(({ type }) => type === 'TenantUpdated').length;
};

/** On one instance, or the next ones while that does not answer, until it is acknowledged. */
const written = async ({ running }: Instances, key: string, at: number, name: string) => {
  const headers = { 'SVC-IDEMPOTENCY-KEY': randomUUID() };
  for (let tries = 0; ; tries += 1) {
    const by = (at + tries) % running.length;
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const answer = await rename(running[by]!, key, name, { headers, signal }).catch(() => undefined);
    if (answer !== undefined && !REPEATED.has(answer.status)) return { ...answer, by };
    await pause(20);
  }
};

/**
 * Each customer writes on an instance of its own, one write after the other. At the end every acknowledged write is there
 * once, and nothing else was answered.
 */
export const startWriters = async (instances: Instances, count: number, restMs = 0) => {
  const customers: NewTenant[] = [];
  for (let n = 0; n < count; n += 1) customers.push(await instances.newTenant());
  const acknowledged: Acknowledged[] = [];
  const refused: string[] = [];
  const ofTenants = '&entity_type=tenant';
  const before = await rowsOf(instances, customers[0]!.key, ofTenants);
  let isOver = false;
  const write = async ({ tenantId, key }: NewTenant, n: number): Promise<number> => {
    for (let done = 0; ; done += 1) {
      if (isOver) return done;
      const from = performance.now();
      const { status, headers, text, by } = await written(instances, key, n, `Write ${done}`);
      if (status !== 200) refused.push(`${status} ${text}`);
      const isPending = headers.has('svc-read-pending');
      acknowledged.push({ tenantId, from, upTo: performance.now(), by, isPending });
      await pause(restMs);
    }
  };
  const writing = customers.map(write);
  // Also if the test fails: they would keep the process alive.
  closeAfterwards(async () => {
    isOver = true;
    await Promise.all(writing);
  });
  return {
    acknowledged,
    stop: async (): Promise<number> => {
      isOver = true;
      const counts = await Promise.all(writing);
      expect(refused).toEqual([]);
      const [logged, shown]: [number[], number[]] = [[], []];
      for (const { tenantId } of customers) logged.push(await changesOf(instances, tenantId));
      expect(logged).toEqual(counts);
      // What was answered with READ-PENDING may be shown a little later.
      for (const [n, { key }] of customers.entries()) {
        const rows = async (): Promise<number> => (await rowsOf(instances, key, ofTenants)) - before;
        await until(async () => (await rows()) >= counts[n]!);
        shown.push(await rows());
      }
      expect(shown).toEqual(counts);
      return counts.reduce((sum, one) => sum + one, 0);
    },
  };
};
