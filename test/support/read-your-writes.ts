import { pause } from '../../src/async/clock';
import type { Crowd } from './crowd';

export interface Seen {
  reads: number;
  pending: number;
  readonly stale: string[];
  readonly failed: string[];
}

export const nothingSeen = (): Seen => ({ reads: 0, pending: 0, stale: [], failed: [] });

/** One client with its own tenant, which writes on one server and immediately reads on the next, and then may pause. */
export const writeAndRead = async (
  servers: readonly Pick<Crowd, 'ask'>[],
  key: string,
  seen: Seen,
  isDone: () => boolean,
  restMs = 0,
): Promise<void> => {
  const rows = async (server: Pick<Crowd, 'ask'>): Promise<number> =>
    (await server.ask('/logs?size=1&entity_type=tenant', { key })).json.pagination.total_items;
  const before = await rows(servers[0]!);
  for (let i = 0; !isDone(); i += 1, await pause(restMs)) {
    const [writer, reader] = [servers[i % servers.length]!, servers[(i + 1) % servers.length]!];
    const name = `Name ${i}`;
    const put = await writer.ask('/tenants/self', { method: 'PUT', key, body: { name } });
    if (put.status !== 200) {
      seen.failed.push(`PUT ${put.status} ${put.text}`);
      continue;
    }
    const [tenant, logs] = await Promise.all([
      reader.ask('/tenants/self', { key }),
      reader.ask('/logs?size=1&entity_type=tenant', { key }),
    ]);
    for (const answer of [tenant, logs])
      if (answer.status !== 200) seen.failed.push(`GET ${answer.status} ${answer.text}`);
    seen.reads += 2;
    if (put.headers.has('svc-read-pending')) {
      seen.pending += 1;
      continue;
    }
    if (tenant.json.name !== name) seen.stale.push(`tenants: ${tenant.json.name} instead of ${name}`);
    const total = logs.json.pagination.total_items as number;
    if (total !== before + i + 1) seen.stale.push(`logs: ${total} rows instead of ${before + i + 1}`);
  }
};
