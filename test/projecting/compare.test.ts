import { randomUUID } from 'node:crypto';
import type { Projector } from '../../projections/projector';
import { compare, type Difference } from '../../src/projecting/compare';
import { PARKED, type Generation, type Write } from '../../src/read-models/read-models';
import { closeAfterwards } from '../support/closing';
import { storeUnderTest } from '../support/store-under-test';
import { createAndOpen } from '../support/generations';

const projector: Projector = {
  name: 'shelves',
  version: 1,
  streams: ['tenant'],
  collections: [
    { name: 'rows', indexes: { by_number: ['number'] } },
    { name: 'heads', indexes: {} },
  ],
  on: {},
};

/** More than a few ranges of each collection. */
const ROWS = 1_900;
const TENANTS = [randomUUID(), randomUUID(), randomUUID()];

const writesOf = (): Write[] =>
  Array.from({ length: ROWS }, (_, number) =>
    projector.collections.map(({ name }) => ({
      tenantId: TENANTS[number % TENANTS.length] as string,
      collection: name,
      key: `key ${number}`,
      document: { number },
    })),
  ).flat();

const filled = async (writes: readonly Write[]): Promise<Generation> => {
  const readModels = await storeUnderTest(undefined, {});
  closeAfterwards(readModels.close);
  const id = { projection: projector.name, version: 1, generation: 'one' };
  const generation = await createAndOpen(readModels, id, projector.collections, 'log');
  expect(await generation.commit(0, { position: '1', eventId: 'e' }, writes)).toBe(true);
  return generation;
};

const nameOf = ({ collection, key, kind }: Difference): string => `${kind} ${collection} ${key}`;

const differencesOf = async (live: readonly Write[], replayed: readonly Write[], tenantId?: string) => {
  const found: string[] = [];
  let sought = 0;
  const generation = await filled(live);
  const watched: Generation = {
    ...generation,
    snapshot: (keys) => {
      sought += keys.length;
      return generation.snapshot(keys);
    },
  };
  const comparison = await compare(projector, watched, await filled(replayed), {
    follow: async () => undefined,
    onDifference: (difference) => void found.push(nameOf(difference)),
    ...(tenantId === undefined ? {} : { tenantId }),
  });
  expect(comparison.differences).toBe(found.length);
  return { found: found.toSorted(), documents: comparison.documents, sought };
};

const changed = (writes: readonly Write[], at: number, document: Write['document']): Write[] =>
  writes.map((write, i) => (i === at ? { ...write, document } : write));

const WRONG = 777;

describe('a comparison', () => {
  const orders: [string, (writes: Write[]) => Write[]][] = [
    ['in the same order', (writes) => writes],
    ['in reverse order', (writes) => writes.toReversed()],
    [
      'with the documents of one tenant at the end',
      (writes) =>
        writes.toSorted((a, b) => Number(a.tenantId === TENANTS[0]) - Number(b.tenantId === TENANTS[0])),
    ],
  ];

  it.each(orders)('reports each difference once, built %s', async (_, order) => {
    const all = writesOf();
    const [rows, heads] = [2 * WRONG, 2 * WRONG + 1];
    const live = changed(changed(changed(all, rows, { number: -1 }), heads, { number: -1 }), 10, undefined);
    const replayed = changed(order(all), 0, undefined);
    const absent = order(all)[0] as Write;
    const { found } = await differencesOf(live, replayed);
    expect(found).toEqual(
      [
        `differs rows key ${WRONG}`,
        `differs heads key ${WRONG}`,
        'missing rows key 5',
        `too_many ${absent.collection} ${absent.key}`,
      ].toSorted(),
    );
  });

  it('looks up nothing by key if both are stored in the same order, or if the replay holds only that tenant', async () => {
    expect(await differencesOf(writesOf(), writesOf())).toMatchObject({ found: [], sought: 0 });
    const [, , last = ''] = TENANTS;
    const alone = writesOf().filter(({ tenantId }) => tenantId === last);
    expect(await differencesOf(writesOf(), alone, last)).toMatchObject({ found: [], sought: 0 });
  });

  it.each<[string, object | undefined, object | undefined, boolean]>([
    ['both at the same event', { event_id: 'a' }, { event_id: 'a' }, true],
    ['in the live generation only', { event_id: 'a' }, undefined, false],
    ['at another event in the replay', { event_id: 'a' }, { event_id: 'b', cause: 'bad_event' }, false],
    ['in the replay only, at a bad event', undefined, { event_id: 'b', cause: 'bad_event' }, true],
    ['in the replay only, by missing events', undefined, { event_id: 'b', cause: 'missing_events' }, false],
  ])('of a tenant parked %s', async (_, live, replayed, isCompared) => {
    const [tenantId = ''] = TENANTS;
    const writes = (number: number, parked: object | undefined): readonly Write[] => [
      { tenantId, collection: 'rows', key: 'key', document: { number } },
      ...(parked === undefined
        ? []
        : [{ tenantId, collection: PARKED, key: 'tenant', document: { ...parked } }]),
    ];
    const { found } = await differencesOf(writes(1, live), writes(2, replayed));
    expect(found).toEqual(isCompared ? ['differs rows key'] : []);
  });

  it('waits until the live generation is as far as the replay', async () => {
    const [tenantId = ''] = TENANTS;
    const row = (number: number): Write => ({
      tenantId,
      collection: 'rows',
      key: 'key',
      document: { number },
    });
    const [live, replayed] = [await filled([row(1)]), await filled([row(1)])];
    const next = { position: '2', eventId: 'f' };
    await replayed.commit(1, next, [row(2)]);
    let looks = 0;
    const watched: Generation = {
      ...live,
      snapshot: async (keys) => {
        looks += 1;
        if (looks === 2) await live.commit(1, next, [row(2)]);
        return live.snapshot(keys);
      },
    };
    const { differences } = await compare(projector, watched, replayed, {
      follow: async () => undefined,
      onDifference: () => undefined,
    });
    expect([differences, looks]).toEqual([0, 2]);
  });
});
