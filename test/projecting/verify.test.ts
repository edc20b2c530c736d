import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { change, type Projector } from '../../projections/projector';
import type { Difference } from '../../src/projecting/compare';
import { setAside } from '../../src/projecting/parking';
import { verify, type Verified } from '../../src/projecting/verify';
import type { Compared, DocumentKey, Generation } from '../../src/read-models/read-models';
import { freshFolder } from '../support/folders';
import { seed, seeded } from '../support/property';
import { signal } from '../support/waiting';
import { lineCollections, plainLines } from './lines';
import { edit, headOf, lines, projectInto, replaying, someTenants, type Replaying } from './replay';
import { closeAll, created, documentsOf, openProcess, openReadModels, streams, turn, updated } from './world';

const ACTOR = { type: 'user', id: randomUUID() } as const;

interface Options {
  readonly projector?: Projector;
  readonly tenantId?: string;
  readonly onProgress?: () => void;
}

const verified = async (
  world: Replaying,
  { projector = lines, tenantId, onProgress = () => undefined }: Options = {},
): Promise<Verified & { readonly found: readonly Difference[] }> => {
  const found: Difference[] = [];
  const scratch = await openReadModels(freshFolder());
  const report = await verify(world, scratch, await world.live(projector), {
    ...(tenantId === undefined ? {} : { tenantId }),
    onDifference: (one) => void found.push(one),
    onProgress,
  });
  return { ...report, found };
};

const nameOf = ({ tenantId, collection, key }: DocumentKey): string => `${tenantId} ${collection} ${key}`;

/** The same generation, with something done before anything of it is looked at that is compared. */
const beforeEachLook = (generation: Generation, look: () => Promise<void>): Generation => {
  const { reader, snapshot, ownDifferences } = generation;
  async function* looking(steps: AsyncIterable<Compared>): AsyncGenerator<Compared> {
    await look();
    for await (const step of steps) {
      yield step;
      await look();
    }
  }
  return {
    ...generation,
    reader: {
      ...reader,
      scan: async (...parts) => {
        await look();
        return reader.scan(...parts);
      },
    },
    snapshot: async (keys) => {
      await look();
      return snapshot(keys);
    },
    ownDifferences: (rebuilt, collection) => {
      const steps = ownDifferences?.(rebuilt, collection);
      return steps === undefined ? undefined : looking(steps);
    },
  };
};

/** No tenant has an empty name, but a key may be empty. */
const keyOf = (name: string): string => (name === 'empty' ? '' : name);

/** One document per name, with the odd names that keys may have. */
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
  it('finds nothing where nothing is wrong, and touches nothing', async () => {
    const world = await replaying();
    await someTenants(world);
    const { generation } = await world.catchUp();
    const before = await generation.control();
    expect(await verified(world)).toEqual({
      projection: 'lines',
      documents: 12,
      differences: 0,
      parked: [],
      gaps: [],
      found: [],
    });
    expect(await generation.control()).toEqual(before);
  });

  it('of an empty log finds nothing', async () => {
    expect(await verified(await replaying())).toMatchObject({ documents: 0, differences: 0 });
  });

  it('names what differs, is missing and is too many, with both contents', async () => {
    const world = await replaying();
    const [one = '', two = '', three = ''] = await someTenants(world);
    const { generation } = await world.catchUp();
    const right = plainLines(world.history);
    await edit(generation, headOf(one), { count: 99, sum: 0 });
    await edit(generation, headOf(two), undefined);
    const extra = { tenantId: three, collection: 'marks', key: 'extra' };
    await edit(generation, extra, { at: 'nowhere' });
    const { found, differences } = await verified(world);
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

  it('finds a document of a tenant that the log does not know', async () => {
    const world = await replaying();
    await someTenants(world);
    const { generation } = await world.catchUp();
    for (const tenantId of ['00000000-0000-4000-8000-000000000000', 'ffffffff-ffff-4fff-bfff-ffffffffffff'])
      await edit(generation, { tenantId, collection: 'marks', key: 'x' }, { at: 'x' });
    expect((await verified(world)).found.map(({ kind }) => kind)).toEqual(['too_many', 'too_many']);
  });

  describe('at the borders of pages', () => {
    it.each([499, 500, 501, 1_000, 1_001])('of %i rows', async (rows) => {
      const world = await replaying();
      const tenantId = randomUUID();
      await world.record(tenantId, created(), ...Array.from({ length: rows - 1 }, () => updated('a')));
      const { generation } = await world.catchUp();
      const keys = world.history.map(({ position }) => position);
      const row = (key: string): DocumentKey => ({ tenantId, collection: 'rows', key });
      const wrong = [...new Set([0, 1, 498, 499, 500, 501, rows - 2, rows - 1])].filter((i) => i < rows);
      for (const [n, i] of wrong.entries())
        await edit(generation, row(keys[i] as string), n % 2 === 0 ? undefined : { number: -1 });
      await edit(generation, row('0'), { number: 0 });
      await edit(generation, row('9'), { number: 0 });
      const { found } = await verified(world);
      const expected = [...wrong.map((i) => keys[i] as string), '0', '9'].toSorted();
      expect(found.map(({ key }) => key).toSorted()).toEqual(expected);
    });
  });

  it('takes keys with odd characters in the same order on both sides', async () => {
    const world = await replaying();
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
      await world.record(
        tenantId,
        created(),
        ...Array.from({ length: 700 }, (_, i) => updated(`${odd[i % odd.length]}${i}`)),
        ...odd.map((name) => updated(name === '' ? 'empty' : name)),
      );
    const { generation } = await world.catchUp(names);
    expect(await verified(world, { projector: names })).toMatchObject({ documents: 1_432, differences: 0 });
    for (const tenantId of tenants)
      for (const key of odd) await edit(generation, { tenantId, collection: 'names', key }, { name: 'x' });
    const { found } = await verified(world, { projector: names });
    const expected = tenants.flatMap((tenantId) => odd.map((key) => `${tenantId} names ${key}`));
    expect(found.map(nameOf).toSorted()).toEqual(expected.toSorted());
    const [tenantId = ''] = tenants;
    expect((await verified(world, { projector: names, tenantId })).found).toHaveLength(odd.length);
  });

  it('of one tenant looks at nobody else', async () => {
    const world = await replaying();
    const tenants = (await someTenants(world, 5)).toSorted();
    const { generation } = await world.catchUp();
    for (const tenantId of tenants) await edit(generation, headOf(tenantId), { count: 99, sum: 0 });
    for (const tenantId of tenants) {
      const { found, documents } = await verified(world, { tenantId });
      expect(found.map(nameOf)).toEqual([nameOf(headOf(tenantId))]);
      expect(documents).toBe(4);
    }
    expect(await verified(world, { tenantId: randomUUID() })).toMatchObject({ documents: 0, differences: 0 });
  });

  it('of one tenant with more than a page of documents sees all of them', async () => {
    const world = await replaying();
    const tenants = [randomUUID(), randomUUID(), randomUUID()].toSorted();
    for (const tenantId of tenants)
      await world.record(tenantId, created(), ...Array.from({ length: 1_100 }, () => updated('a')));
    const { generation } = await world.catchUp();
    const own = world.history.filter((one) => one.tenantId === tenants[1]);
    const last = { tenantId: tenants[1] as string, collection: 'rows', key: own.at(-1)?.position ?? '' };
    await edit(generation, last, undefined);
    const { found } = await verified(world, { tenantId: tenants[1] as string });
    expect(found.map(nameOf)).toEqual([nameOf(last)]);
  });

  it('reports a parked tenant as parked, not as different', async () => {
    const world = await replaying();
    const [tenantId = '', other = ''] = await someTenants(world);
    world.log.plant(streams.tenant(tenantId), { type: 'TenantPainted', data: '{}' });
    await world.record(tenantId, updated('waits'));
    await world.catchUp();
    expect(await verified(world)).toMatchObject({ differences: 0, parked: [tenantId] });
    expect(await verified(world, { tenantId })).toMatchObject({ differences: 0, parked: [tenantId] });
    expect(await verified(world, { tenantId: other })).toMatchObject({ differences: 0, parked: [] });
  });

  it('finds an edited document of a parked tenant', async () => {
    const world = await replaying();
    const [tenantId = ''] = await someTenants(world);
    world.log.plant(streams.tenant(tenantId), { type: 'TenantPainted', data: '{}' });
    const { generation } = await world.catchUp();
    await edit(generation, headOf(tenantId), { count: 99, sum: 0 });
    expect((await verified(world)).found.map(nameOf)).toEqual([nameOf(headOf(tenantId))]);
  });

  it.each(['before', 'while'])(
    'obeys what was set aside %s it runs, also when live does not yet',
    async (when) => {
      const world = await replaying();
      const [tenantId = ''] = await someTenants(world);
      const eventId = world.log.plant(streams.tenant(tenantId), { type: 'TenantPainted', data: '{}' });
      await world.record(tenantId, updated('waits'));
      const live = await world.catchUp();
      const at = new Date().toISOString();
      const aside = () => setAside({ ...world, live: [live] }, { eventId, reason: 'x', actor: ACTOR, at });
      if (when === 'before') await aside();
      expect(await verified(world)).toMatchObject({ differences: 0, parked: [tenantId] });
      if (when === 'before') return;
      const [reached, goOn] = [signal(), signal()];
      const slow: Replaying = {
        ...world,
        live: async () => ({
          ...live,
          generation: beforeEachLook(live.generation, async () => {
            reached.give();
            await goOn.given;
          }),
        }),
      };
      const verifying = verified(slow);
      await reached.given;
      await aside();
      const server = await openProcess(world.log, await openReadModels(world.folder), [lines]);
      expect(await server.retryParked()).toBe('done');
      await projectInto(world, live);
      goOn.give();
      expect(await verifying).toMatchObject({ differences: 0, parked: [] });
    },
  );

  it(
    seeded('finds exactly what is wrong while the live one moves on'),
    async () => {
      const someEdit = fc.record({ at: fc.nat(), how: fc.constantFrom('edit', 'remove', 'add') });
      const property = fc.asyncProperty(
        fc.array(fc.nat(3), { minLength: 1, maxLength: 40 }),
        fc.array(someEdit, { maxLength: 4 }),
        async (writes, edits) => {
          const world = await replaying();
          const quietTenants = await someTenants(world, 3);
          const busyTenants = await someTenants(world, 4);
          await world.record(quietTenants[0] as string, ...Array.from({ length: 600 }, () => updated('x')));
          const { generation } = await world.catchUp();
          const rows = Object.keys(plainLines(world.history)).filter((name) =>
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
          const server = await openProcess(world.log, await openReadModels(world.folder), [lines]);
          await server.start();
          const writing = (async () => {
            for (const i of writes) {
              await world.record(busyTenants[i] as string, updated('moves on'));
              await turn();
            }
          })();
          const { found } = await verified(world);
          await writing;
          expect(new Map(found.map((one) => [nameOf(one), one.kind]))).toEqual(wrong);
          await closeAll();
        },
      );
      await fc.assert(property, { seed, numRuns: 6, endOnFailure: true });
    },
    60_000,
  );

  it('raises no false alarm though the live one moves on at every look', async () => {
    const world = await replaying();
    const [busy = '', wrong = ''] = await someTenants(world);
    const live = await world.catchUp();
    await edit(live.generation, headOf(wrong), { count: 99, sum: 0 });
    let looks = 0;
    const moveOn = async (): Promise<void> => {
      looks += 1;
      // A scan page by page would never come to the end of what grows with every page.
      if (looks > 30) return;
      await world.record(busy, updated('moves on'));
      await projectInto(world, live);
    };
    const moving = beforeEachLook(live.generation, moveOn);
    const { found } = await verified({ ...world, live: async () => ({ ...live, generation: moving }) });
    expect(found.map(nameOf)).toEqual([nameOf(headOf(wrong))]);
    expect(looks).toBeGreaterThan(3);
  });

  it('finds nothing wrong in what a rebuild made', async () => {
    const world = await replaying();
    const [tenantId = ''] = await someTenants(world);
    const { generation } = await world.catchUp();
    await edit(generation, headOf(tenantId), { count: 99, sum: 0 });
    expect((await verified(world)).differences).toBe(1);
    await world.rebuild();
    expect((await verified(world)).differences).toBe(0);
    const { generation: live } = await world.live();
    expect(await documentsOf(live, lineCollections)).toEqual(plainLines(world.history));
  });
});
