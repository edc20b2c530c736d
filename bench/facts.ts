import { randomUUID } from 'node:crypto';
import type { App } from '../src/app/app';
import { entityFactTypes } from '../src/domain/events';
import { appendToEnd, type Expected } from '../src/event-log/event-log';
import { codeOf } from '../src/fault';

export const factTypes: readonly string[] = [...entityFactTypes, 'ActivityReported'];

const BATCH = 100;

const ENTITIES_PER_TYPE = 2_000;

/** Ids are not shared between types, as with real, random ids. */
const factOf = (type: string) => ({
  id: randomUUID(),
  type,
  data: {
    entityId: `${type.slice(0, 4)}-${Math.floor(Math.random() * ENTITIES_PER_TYPE)}`,
    entityType: 'webhook',
    operation: 'sent',
  },
  metadata: { version: 1 },
});

const facts = (count: number) =>
  Array.from({ length: count }, (_, i) => factOf(factTypes[i % factTypes.length] as string));

const APPEND_MS = 60_000;

/** Appends facts, spread evenly over tenants. A service may append the uses of a key to the same streams. */
export const appendFacts = async (
  { log, streams }: Pick<App, 'log' | 'streams'>,
  count: number,
  tenants: readonly string[],
): Promise<void> => {
  const ends = new Map<string, Expected>();
  const append = (stream: string, events: ReturnType<typeof facts>) =>
    log.append(stream, events, ends.get(stream) ?? 'no_stream', APPEND_MS).catch((error: unknown) => {
      if (codeOf(error) !== 'stream_changed') throw error;
      return appendToEnd(log, stream, events, APPEND_MS);
    });
  for (let done = 0; done < count; done += BATCH * tenants.length) {
    const each = Math.min(BATCH, Math.ceil((count - done) / tenants.length));
    await Promise.all(
      tenants.map(async (tenantId) => {
        const stream = streams.activity(tenantId);
        const { revision } = await append(stream, facts(each));
        ends.set(stream, revision);
      }),
    );
  }
};

/** Facts as `ingest` reads them, one per line. */
export const factLines = (tenants: readonly string[], count: number): string =>
  Array.from({ length: count }, (_, i) => {
    const { id, type, data } = factOf(factTypes[i % factTypes.length] as string);
    const occurredAt = new Date(Date.now() - Math.floor(Math.random() * 5_000_000_000)).toISOString();
    return `${JSON.stringify({ id, tenant_id: tenants[i % tenants.length], type, data: { ...data, occurredAt } })}\n`;
  }).join('');
