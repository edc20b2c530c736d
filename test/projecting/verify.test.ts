import * as fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import { projections } from '../../projections/projections';
import { change, PROGRESS, PROGRESS_KEY, type Projector } from '../../projections/projector';
import type { Difference } from '../../src/projecting/compare';
import { setAside } from '../../src/projecting/parked-tenants';
import { verify, type Verified } from '../../src/projecting/verify';
import type { DocumentKey, ReadModels, ReadModelSet } from '../../src/read-models/read-models';
import { closeAll } from '../support/closing';
import { eventsOf } from '../support/events';
import { seed, seeded } from '../support/property';
import { inFile } from '../support/sqlite-logs';
import {
  created,
  documentsOf,
  freshPlace,
  headOf,
  poisoned,
  replayHarness,
  someTenants,
  streams,
  turn,
  updated,
  type ReplayHarness,
} from './harness';
import { lineCollections, linesProjector, plainLines } from './lines';

const ACTOR = { type: 'user', id: randomUUID() } as const;

const verified = async (
  harness: ReplayHarness,
  tenantId?: string,
  readModels: ReadModels = harness.readModels,
): Promise<Verified & { readonly found: readonly Difference[] }> => {
  const found: Difference[] = [];
  const scratch = freshPlace(harness.projector).open();
  const report = await verify({ ...harness, readModels }, scratch, {
    tenantId,
    onDifference: (difference) => void found.push(difference),
    onProgress: () => undefined,
  });
  expect(report.differences).toBe(found.length);
  return { ...report, found };
};

const nameOf = ({ tenantId, collection, key }: DocumentKey): string => `${tenantId} ${collection} ${key}`;

/** The same store, with a callback before every read of its live set. */
const beforeEachRead = (readModels: ReadModels, look: () => Promise<void>): ReadModels => {
  const looking = (set: ReadModelSet): ReadModelSet => ({
    ...set,
    scan: async (...scope) => {
      await look();
      return set.scan(...scope);
    },
    get: async (...key) => {
      await look();
      return set.get(...key);
    },
  });
  return {
    ...readModels,
    live: async () => {
      const live = await readModels.live();
      return live && { ...live, set: looking(live.set) };
    },
  };
};

/** No tenant has an empty name, but a key may be empty. */
const keyOf = (name: string): string => (name === 'empty' ? '' : name);

/** One document per name, with the unusual names that keys may have. */
const names: Projector = {
  ...linesProjector(),
  name: 'names',
  collections: [{ name: 'names', indexes: {} }],
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
    await harness.catchUp();
    const before = await harness.set.control();
    expect(await verified(harness)).toEqual({
      documents: 15,
      differences: 0,
      parked: [],
      gaps: [],
      found: [],
    });
    expect(await harness.set.control()).toEqual(before);
  });

  it('finds every document that differs, is missing or is extra, and nothing else', async () => {
    const harness = await replayHarness();
    const tenants = await someTenants(harness);
    await harness.catchUp();
    const right = await documentsOf(harness.set, [...lineCollections, PROGRESS.name]);
    const where = (name: string): DocumentKey => {
      const [tenantId = '', collection = '', key = ''] = name.split(' ');
      return { tenantId, collection, key };
    };
    for (const [name, document] of Object.entries(right)) {
      // Without progress, nothing of the tenant would count as applied.
      const isProgress = where(name).collection === PROGRESS.name;
      for (const wrong of [{ ...document, wrong: true }, ...(isProgress ? [] : [undefined])]) {
        harness.edit(where(name), wrong);
        const kind = wrong === undefined ? 'missing' : 'differs';
        const expected = [{ ...where(name), kind, live: wrong, replayed: document }];
        expect((await verified(harness)).found).toEqual(expected);
      }
      harness.edit(where(name), document);
    }
    const extra = { tenantId: tenants[0] as string, collection: 'marks', key: 'extra' };
    harness.edit(extra, { at: 'nowhere' });
    const { found } = await verified(harness);
    expect(found).toEqual([{ ...extra, kind: 'too_many', live: { at: 'nowhere' }, replayed: undefined }]);
  });

  it('orders keys with unusual characters in the same way on both sides', async () => {
    const harness = await replayHarness([names]);
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
      '%_',
      ' ',
    ];
    const tenants = [randomUUID(), randomUUID()];
    for (const tenantId of tenants)
      await harness.record(
        tenantId,
        created(),
        ...Array.from({ length: 300 }, (_, i) => updated(`${odd[i % odd.length]}${i}`)),
        ...odd.map((name) => updated(name === '' ? 'empty' : name)),
      );
    await harness.catchUp();
    expect(await verified(harness)).toMatchObject({ documents: 632, differences: 0 });
    for (const tenantId of tenants)
      for (const key of odd) harness.edit({ tenantId, collection: 'names', key }, { name: 'x' });
    const { found } = await verified(harness);
    const expected = tenants.flatMap((tenantId) => odd.map((key) => `${tenantId} names ${key}`));
    expect(found.map(nameOf).toSorted()).toEqual(expected.toSorted());
    expect((await verified(harness, tenants[0])).found).toHaveLength(odd.length);
  });

  it('of one tenant reads no other', async () => {
    const harness = await replayHarness();
    const tenants = await someTenants(harness, 3);
    await harness.catchUp();
    for (const tenantId of tenants) harness.edit(headOf(tenantId), { count: 99, sum: 0 });
    for (const tenantId of tenants) {
      const { found, documents } = await verified(harness, tenantId);
      expect(found.map(nameOf)).toEqual([nameOf(headOf(tenantId))]);
      expect(documents).toBe(5);
    }
    expect(await verified(harness, randomUUID())).toMatchObject({ documents: 0, differences: 0 });
  });

  it('reports a parked tenant as parked, and an edited document of it', async () => {
    const { harness, tenantId, other } = await poisoned();
    for (const only of [undefined, tenantId])
      expect(await verified(harness, only)).toMatchObject({ differences: 0, parked: [tenantId] });
    expect(await verified(harness, other)).toMatchObject({ differences: 0, parked: [] });
    harness.edit(headOf(tenantId), { count: 99, sum: 0 });
    expect((await verified(harness)).found.map(nameOf)).toEqual([nameOf(headOf(tenantId))]);
  });

  it('finds an event that was altered in the log, although no other read model shows what it was', async () => {
    const harness = await replayHarness(projections);
    const [tenantId = '', other = ''] = await someTenants(harness);
    await harness.catchUp();
    expect(await verified(harness)).toMatchObject({ differences: 0 });
    const [, altered] = await eventsOf(harness.log.readStream(streams.tenant(tenantId)));
    const sql = `UPDATE events SET data = replace(data, '"a"', '"x"') WHERE id = ?`;
    expect(inFile(harness.log.folder, (db) => db.prepare(sql).run(altered!.id).changes)).toBe(1);
    expect((await verified(harness)).found.map(nameOf)).toEqual([
      `${tenantId} log_rows ${altered!.id}`,
      `${tenantId} ${PROGRESS.name} ${PROGRESS_KEY}`,
    ]);
    expect(await verified(harness, other)).toMatchObject({ differences: 0 });
  });

  it('reports events that are missing from the log as gaps, not as differences', async () => {
    const harness = await replayHarness();
    const [tenantId = ''] = await someTenants(harness);
    await harness.catchUp();
    harness.log.lose(streams.tenant(tenantId), 1);
    for (const only of [undefined, tenantId])
      expect(await verified(harness, only)).toMatchObject({
        differences: 0,
        parked: [],
        gaps: [{ tenant_id: tenantId }],
      });
  });

  it.each(['before', 'while'])('respects an event set aside %s it runs', async (when) => {
    const { harness, tenantId, eventId } = await poisoned();
    const at = new Date().toISOString();
    const aside = () => setAside(harness, { eventId, reason: 'x', actor: ACTOR, at });
    if (when === 'before') {
      await aside();
      expect(await verified(harness)).toMatchObject({ differences: 0, parked: [tenantId] });
      return;
    }
    let isDone = false;
    const meanwhile = beforeEachRead(harness.readModels, async () => {
      if (isDone) return;
      isDone = true;
      await aside();
      await harness.retry();
    });
    expect(await verified(harness, undefined, meanwhile)).toMatchObject({ differences: 0, parked: [] });
  });

  it(
    seeded('reports exactly what is wrong while the live set moves on'),
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
          await harness.catchUp();
          const rows = Object.keys(plainLines(harness.history)).filter((name) =>
            quietTenants.some((tenantId) => name.startsWith(tenantId)),
          );
          const wrong = new Map<string, string>();
          for (const { at, how } of edits) {
            const [tenantId = '', collection = '', key = ''] = (rows[at % rows.length] as string).split(' ');
            const where = { tenantId, collection: how === 'add' ? 'marks' : collection, key };
            if (wrong.has(nameOf(where))) continue;
            harness.edit(where, how === 'remove' ? undefined : { wrong: true });
            wrong.set(nameOf(where), { edit: 'differs', remove: 'missing', add: 'too_many' }[how]);
          }
          const writing = (async () => {
            for (const i of writes) {
              await harness.record(busyTenants[i] as string, updated('moves on'));
              await harness.catchUp();
              await turn();
            }
          })();
          const slow = beforeEachRead(harness.readModels, turn);
          const { found } = await verified(harness, undefined, slow);
          await writing;
          expect(new Map(found.map((difference) => [nameOf(difference), difference.kind]))).toEqual(wrong);
          await closeAll();
        },
      );
      await fc.assert(property, { seed, numRuns: 6, endOnFailure: true });
    },
    60_000,
  );
});
