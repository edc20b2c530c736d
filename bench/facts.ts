import { randomUUID } from 'node:crypto';
import type { App } from '../src/app/app';
import { factTypes } from '../src/domain/facts';

const TENANTS = 10;
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

/** Appends facts, spread evenly over ten tenants. */
export const appendFacts = async (
  { log, streams }: Pick<App, 'log' | 'streams'>,
  count: number,
): Promise<void> => {
  const tenants = Array.from({ length: TENANTS }, () => randomUUID());
  const ends = new Map<string, number>();
  for (let done = 0; done < count; done += BATCH * TENANTS) {
    const each = Math.min(BATCH, Math.ceil((count - done) / TENANTS));
    await Promise.all(
      tenants.map(async (tenantId) => {
        const stream = streams.activity(tenantId);
        const { revision } = await log.append(stream, facts(each), ends.get(stream) ?? 'no_stream', 60_000);
        ends.set(stream, revision);
      }),
    );
  }
};

export const seconds = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1_000;
};
