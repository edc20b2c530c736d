import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { change, type Projector } from '../../projections/projector';
import type { Difference } from '../../src/projecting/compare';
import { setAside } from '../../src/projecting/set-aside';
import { verify, type Verified } from '../../src/projecting/verify';
import type { DocumentKey, Generation } from '../../src/read-models/read-models';
import { closeAll } from '../support/closing';
import { freshFolder } from '../support/folders';
import { seed, seeded } from '../support/property';
import { deferred } from '../support/waiting';
import { plainLines } from './lines';
import { edit, headOf, lines, projectInto, replayHarness, someTenants, type ReplayHarness } from './replay';
import { created, openProcess, openReadModels, streams, turn, updated } from './harness';

const ACTOR = { type: 'user', id: randomUUID() } as const;

interface Options {
  readonly projector?: Projector;
  readonly tenantId?: string;
  readonly onProgress?: () => void;
}

const verified = async (
  harness: ReplayHarness,
  { projector = lines, tenantId, onProgress = () => undefined }: Options = {},
): Promise<Verified & { readonly found: readonly Difference[] }> => {
  const found: Difference[] = [];
  const scratch = await openReadModels(freshFolder());
  const report = await verify(harness, scratch, await harness.live(projector), {
    ...(tenantId === undefined ? {} : { tenantId }),
    onDifference: (difference) => void found.push(difference),
    onProgress,
  });
  return { ...report, found };
};

const nameOf = ({ tenantId, collection, key }: DocumentKey): string => `${tenantId} ${collection} ${key}`;

/** The same generation, with a callback before every read of a comparison. */
const beforeEachLook = (generation: Generation, look: () => Promise<void>): Generation => {
  const { scanTexts, snapshot } = generation;
  return {
    ...generation,
    scanTexts: async (...scope) => {
      await look();
      return scanTexts(...scope);
    },
    snapshot: async (keys) => {
      await look();
      return snapshot(keys);
    },
  };
};

/** No tenant has an empty name, but a key may be empty. */
const keyOf = (name: string): string => (name === 'empty' ? '' : name);

/** One document per name, with the unusual names that keys may have. */
const names: Projector = {
  ...lines,
  name: 'names',
  collections: [{ name: 'names', indexes: { by_at: ['at'] } }],
  on: {
    TenantUpdated: (event) => [
      change<{ name: string; times: number }>('names', keyOf(event.data.name), (now) => ({
        name: event.data.name,
        times: (now?.times ?? 0) + 1,
      })),
    ],
  },
};

describe('verify', () => {
  it('reports nothing if nothing is wrong, and changes nothing', async () => {
    const harness = await replayHarness();
    await someTenants(harness);
    const { generation } = await harness.catchUp();
    const before = await generation.control();
    expect(await verified(harness)).toEqual({
      projection: 'lines',
      documents: 12,
      differences: 0,
      parked: [],
      gaps: [],
      found: [],
    });
    expect(await generation.control()).toEqual(before);
  });

  it('of an empty log reports nothing', async () => {
    expect(await verified(await replayHarness())).toMatchObject({ documents: 0, differences: 0 });
  });

  it('reports documents that differ, are missing or are extra, with both contents', async () => {
    const harness = await replayHarness();
    const [one = '', two = '', three = ''] = await someTenants(harness);
    const { generation } = await harness.catchUp();
    const right = plainLines(harness.history);
    await edit(generation, headOf(one), { count: 99, sum: 0 });
    await edit(generation, headOf(two), undefined);
    const extra = { tenantId: three, collection: 'marks', key: 'extra' };
    await edit(generation, extra, { at: 'nowhere' });
    const { found, differences } = await verified(harness);
    expect(differences).toBe(3);
    const byTenant = (a: Difference, b: Difference) => (a.tenantId < b.tenantId ? -1 : 1);
    const expected: Difference[] = [
      {
        ...headOf(one),
        kind: 'differs',
        live: { count: 99, sum: 0 },
        replayed: right[nameOf(headOf(one))],
      },
      { ...headOf(two), kind: 'missing', live: undefined, replayed: right[nameOf(headOf(two))] },
      { ...extra, kind: 'too_many', live: { at: 'nowhere' }, replayed: undefined },
    ];
    expect(found.toSorted(byTenant)).toEqual(expected.toSorted(byTenant));
  });

  describe('at page boundaries', () => {
    it.each([500, 501])('covers all of %i rows', async (rows) => {
      const harness = await replayHarness();
      const tenantId = randomUUID();
      await harness.record(tenantId, created(), ...Array.from({ length: rows - 1 }, () => updated('a')));
      const { generation } = await harness.catchUp();
      const keys = harness.history.map(({ position }) => position);
      const row = (key: string): DocumentKey => ({ tenantId, collection: 'rows', key });
      const wrong = [...new Set([0, 1, 498, 499, 500, 501, rows - 2, rows - 1])].filter((i) => i < rows);
      for (const [n, i] of wrong.entries())
        await edit(generation, row(keys[i] as string), n % 2 === 0 ? undefined : { number: -1 });
      await edit(generation, row('0'), { number: 0 });
      await edit(generation, row('9'), { number: 0 });
      const { found } = await verified(harness);
      const expected = [...wrong.map((i) => keys[i] as string), '0', '9'].toSorted();
      expect(found.map(({ key }) => key).toSorted()).toEqual(expected);
    });
  });

  it('orders keys with unusual characters in the same way on both sides', async () => {
    const harness = await replayHarness();
    const odd = [
      '',
      'ä',
      'Z',
      'a b',
      'a',
      '😀',
      '％',
      '\uffee',
      "it's",
      '"',
      '\\',
      '漢字',
      'e\u0301',
      '\t',
      '%_',
      ' ',
    ];
    const tenants = [randomUUID(), randomUUID()];
    for (const tenantId of tenants)
      await harness.record(
        tenantId,
        created(),
        ...Array.from({ length: 700 }, (_, i) => updated(`${odd[i % odd.length]}${i}`)),
        ...odd.map((name) => updated(name === '' ? 'empty' : name)),
      );
    const { generation } = await harness.catchUp(names);
    expect(await verified(harness, { projector: names })).toMatchObject({ documents: 1_432, differences: 0 });
    for (const tenantId of tenants)
      for (const key of odd) await edit(generation, { tenantId, collection: 'names', key }, { name: 'x' });
    const { found } = await verified(harness, { projector: names });
    const expected = tenants.flatMap((tenantId) => odd.map((key) => `${tenantId} names ${key}`));
    expect(found.map(nameOf).toSorted()).toEqual(expected.toSorted());
    const [tenantId = ''] = tenants;
    expect((await verified(harness, { projector: names, tenantId })).found).toHaveLength(odd.length);
  });

  it('of one tenant reads no other', async () => {
    const harness = await replayHarness();
    const tenants = (await someTenants(harness, 5)).toSorted();
    const { generation } = await harness.catchUp();
    for (const tenantId of tenants) await edit(generation, headOf(tenantId), { count: 99, sum: 0 });
    for (const tenantId of tenants) {
      const { found, documents } = await verified(harness, { tenantId });
      expect(found.map(nameOf)).toEqual([nameOf(headOf(tenantId))]);
      expect(documents).toBe(4);
    }
    expect(await verified(harness, { tenantId: randomUUID() })).toMatchObject({
      documents: 0,
      differences: 0,
    });
  });

  it('reports a parked tenant as parked, not as different', async () => {
    const harness = await replayHarness();
    const [tenantId = '', other = ''] = await someTenants(harness);
    harness.log.plant(streams.tenant(tenantId), { type: 'TenantPainted', data: '{}' });
    await harness.record(tenantId, updated('waits'));
    await harness.catchUp();
    expect(await verified(harness)).toMatchObject({ differences: 0, parked: [tenantId] });
    expect(await verified(harness, { tenantId })).toMatchObject({ differences: 0, parked: [tenantId] });
    expect(await verified(harness, { tenantId: other })).toMatchObject({ differences: 0, parked: [] });
  });

  it('reports an edited document of a parked tenant', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    harness.log.plant(streams.tenant(tenantId), { type: 'TenantPainted', data: '{}' });
    const { generation } = await harness.catchUp();
    await edit(generation, headOf(tenantId), { count: 99, sum: 0 });
    expect((await verified(harness)).found.map(nameOf)).toEqual([nameOf(headOf(tenantId))]);
  });

  it.each(['before', 'while'])(
    'respects an event set aside %s it runs, even if the live generation does not yet',
    async (when) => {
      const harness = await replayHarness();
      const [tenantId = ''] = await someTenants(harness);
      const eventId = harness.log.plant(streams.tenant(tenantId), { type: 'TenantPainted', data: '{}' });
      await harness.record(tenantId, updated('waits'));
      const live = await harness.catchUp();
      const at = new Date().toISOString();
      const aside = () => setAside({ ...harness, live: [live] }, { eventId, reason: 'x', actor: ACTOR, at });
      if (when === 'before') await aside();
      expect(await verified(harness)).toMatchObject({ differences: 0, parked: [tenantId] });
      if (when === 'before') return;
      const [reached, proceed] = [deferred(), deferred()];
      const slow: ReplayHarness = {
        ...harness,
        live: async () => ({
          ...live,
          generation: beforeEachLook(live.generation, async () => {
            reached.resolve();
            await proceed.promise;
          }),
        }),
      };
      const verifying = verified(slow);
      await reached.promise;
      await aside();
      const server = await openProcess(harness.log, await openReadModels(harness.folder), [lines]);
      expect(await server.retryParked()).toBe('done');
      await projectInto(harness, live);
      proceed.resolve();
      expect(await verifying).toMatchObject({ differences: 0, parked: [] });
    },
  );

  it(
    seeded('reports exactly what is wrong while the live generation moves on'),
    async () => {
      const someEdit = fc.record({ at: fc.nat(), how: fc.constantFrom('edit', 'remove', 'add') });
      const property = fc.asyncProperty(
        fc.array(fc.nat(3), { minLength: 1, maxLength: 40 }),
        fc.array(someEdit, { maxLength: 4 }),
        async (writes, edits) => {
          const harness = await replayHarness();
          const quietTenants = await someTenants(harness, 3);
          const busyTenants = await someTenants(harness, 4);
          await harness.record(quietTenants[0] as string, ...Array.from({ length: 600 }, () => updated('x')));
          const { generation } = await harness.catchUp();
          const rows = Object.keys(plainLines(harness.history)).filter((name) =>
            quietTenants.some((tenantId) => name.startsWith(tenantId)),
          );
          const wrong = new Map<string, string>();
          for (const { at, how } of edits) {
            const [tenantId = '', collection = '', key = ''] = (rows[at % rows.length] as string).split(' ');
            const where =
              how === 'add' ? { tenantId, collection: 'marks', key } : { tenantId, collection, key };
            if (wrong.has(nameOf(where))) continue;
            await edit(generation, where, how === 'remove' ? undefined : { wrong: true });
            wrong.set(nameOf(where), { edit: 'differs', remove: 'missing', add: 'too_many' }[how]);
          }
          const server = await openProcess(harness.log, await openReadModels(harness.folder), [lines]);
          await server.start();
          const writing = (async () => {
            for (const i of writes) {
              await harness.record(busyTenants[i] as string, updated('moves on'));
              await turn();
            }
          })();
          const { found } = await verified(harness);
          await writing;
          expect(new Map(found.map((difference) => [nameOf(difference), difference.kind]))).toEqual(wrong);
          await closeAll();
        },
      );
      await fc.assert(property, { seed, numRuns: 6, endOnFailure: true });
    },
    60_000,
  );

  it('raises no false alarm even if the live generation moves on at every read', async () => {
    const harness = await replayHarness();
    const [busy = '', wrong = ''] = await someTenants(harness);
    const live = await harness.catchUp();
    await edit(live.generation, headOf(wrong), { count: 99, sum: 0 });
    let looks = 0;
    const moveOn = async (): Promise<void> => {
      looks += 1;
      // A scan page by page would never reach the end of a collection that grows with every page.
      if (looks > 30) return;
      await harness.record(busy, updated('moves on'));
      await projectInto(harness, live);
    };
    const moving = beforeEachLook(live.generation, moveOn);
    const { found } = await verified({ ...harness, live: async () => ({ ...live, generation: moving }) });
    expect(found.map(nameOf)).toEqual([nameOf(headOf(wrong))]);
    expect(looks).toBeGreaterThan(3);
  });
});
