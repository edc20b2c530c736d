import { randomUUID } from 'node:crypto';
import type { App } from '../src/app/app';
import { factTypes } from '../src/domain/facts';

const TENANTS = 10;
const BATCH = 100;

/** Of each type. */
const ENTITIES = 2_000;

/** An id belongs to one type, as it does where ids are made at random. */
const factOf = (type: string) => ({
  id: randomUUID(),
  type,
  data: {
    entityId: `${type.slice(0, 4)}-${Math.floor(Math.random() * ENTITIES)}`,
    entityType: 'webhook',
    operation: 'sent',
  },
  metadata: { version: 1 },
});

const facts = (count: number) =>
  Array.from({ length: count }, (_, i) => factOf(factTypes[i % factTypes.length] as string));

/** Appends so many facts about ten tenants, as many about each. */
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
