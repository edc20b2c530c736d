import { projectingLease } from '../../src/projecting/lease';
import { prune, unusedGenerations } from '../../src/projecting/prune';
import { rollback } from '../../src/projecting/rebuild';
import { generationName, type GenerationId, type ReadModels } from '../../src/read-models/read-models';
import { lineCollections, plainLines } from './lines';
import { signal } from '../support/waiting';
import { lines, numbersIn, replaying, someTenants, type Replaying } from './replay';
import { documentsOf } from './world';

const unusedIn = async ({ readModels }: Replaying) => unusedGenerations(readModels, [lines]);
const namesIn = async (world: Replaying) => (await unusedIn(world)).map(generationName).toSorted();
const pruneFound = (readModels: ReadModels, found: readonly GenerationId[], known = lines) =>
  prune(readModels, [known], found, 0);
const pruneAll = async (world: Replaying) => pruneFound(world.readModels, await unusedIn(world));

const open = async (
  { readModels, log }: Replaying,
  projection: string,
  version: number,
  generation: number,
) => readModels.open({ projection, version, generation }, lines.collections, await log.identity());

const withTwo = async (): Promise<Replaying> => {
  const world = await replaying();
  await someTenants(world);
  await world.catchUp();
  await world.rebuild();
  return world;
};

describe('prune', () => {
  it('removes nothing where there is only the live one', async () => {
    const world = await replaying();
    await world.live();
    expect(await pruneAll(world)).toEqual([]);
    expect(await numbersIn(world.readModels)).toEqual([1]);
  });

  it('removes the previous one, what killed rebuilds have left and older versions; no more', async () => {
    const world = await withTwo();
    await open(world, 'lines', 1, 7);
    const newer = { ...lines, version: 3 };
    for (const version of [2, 3, 4]) await open(world, 'lines', version, 1);
    await open(world, 'strangers', 1, 1);
    await world.readModels.point('lines', 3, { live: 1 }, undefined);
    expect(await namesIn(world)).toEqual(['lines_v1_1', 'lines_v1_7']);
    expect((await unusedGenerations(world.readModels, [newer])).map(generationName).toSorted()).toEqual([
      'lines_v1_1',
      'lines_v1_2',
      'lines_v1_7',
      'lines_v2_1',
    ]);
    expect([...(await pruneAll(world))].toSorted()).toEqual(['lines_v1_1', 'lines_v1_7']);
    const left = (await world.readModels.generations()).map(generationName).toSorted();
    expect(left).toEqual(['lines_v1_2', 'lines_v2_1', 'lines_v3_1', 'lines_v4_1', 'strangers_v1_1']);
    expect(await world.readModels.pointer('lines', 1)).toEqual({ live: 2 });
    const { generation } = await world.live();
    expect(await documentsOf(generation, lineCollections)).toEqual(plainLines(world.history));
    await expect(rollback(world.readModels, lines)).rejects.toMatchObject({
      code: 'nothing_to_roll_back_to',
    });
  });

  it('leaves everything of a projection that is being rebuilt', async () => {
    const world = await withTwo();
    await open(world, 'lines', 1, 3);
    await world.readModels.lease('rebuild lines', 'somebody', 60_000);
    expect(await namesIn(world)).toEqual([]);
    await world.readModels.release('rebuild lines', 'somebody');
    expect(await namesIn(world)).toEqual(['lines_v1_1', 'lines_v1_3']);
  });

  it('leaves the versions that an older program projects beside this one', async () => {
    const world = await withTwo();
    const newer = { ...lines, version: 2 };
    await world.readModels.lease(projectingLease('lines', 1), 'somebody', 60_000);
    expect(await unusedGenerations(world.readModels, [newer])).toEqual([]);
    await world.readModels.release(projectingLease('lines', 1), 'somebody');
    expect(await unusedGenerations(world.readModels, [newer])).toHaveLength(2);
  });

  it('killed in the middle leaves nothing that a rebuild would go on with', async () => {
    const world = await withTwo();
    await rollback(world.readModels, lines);
    const killed = { ...world.readModels, drop: () => Promise.reject(new Error('killed')) };
    await expect(pruneFound(killed, await unusedIn(world))).rejects.toThrow('killed');
    expect(await world.readModels.pointer('lines', 1)).toEqual({ live: 1 });
    expect(await numbersIn(world.readModels)).toEqual([1, 2]);
    expect((await world.rebuild()).generation).toBe('lines_v1_3');
    expect([...(await pruneAll(world))].toSorted()).toEqual(['lines_v1_1', 'lines_v1_2']);
  });

  it('leaves what became live while the operator was asked', async () => {
    const world = await withTwo();
    const unused = await unusedIn(world);
    await rollback(world.readModels, lines);
    expect(await pruneFound(world.readModels, unused)).toEqual([]);
    expect(await world.readModels.pointer('lines', 1)).toEqual({ live: 1, previous: 2 });
    expect(await numbersIn(world.readModels)).toEqual([1, 2]);
    const { generation } = await world.live();
    expect(await documentsOf(generation, lineCollections)).toEqual(plainLines(world.history));
  });

  it('leaves what a rebuild goes on with since the operator was asked', async () => {
    const world = await withTwo();
    await open(world, 'lines', 1, 3);
    const unused = await unusedIn(world);
    await world.readModels.lease('rebuild lines', 'somebody', 60_000);
    expect(await pruneFound(world.readModels, unused)).toEqual([]);
    expect(await numbersIn(world.readModels)).toEqual([1, 2, 3]);
  });

  it('decides in one step: a rollback comes before it or is refused', async () => {
    const world = await withTwo();
    const killed = { ...world.readModels, drop: () => Promise.reject(new Error('killed')) };
    await expect(pruneFound(killed, await unusedIn(world))).rejects.toThrow('killed');
    await expect(rollback(world.readModels, lines)).rejects.toMatchObject({
      code: 'nothing_to_roll_back_to',
    });
    expect(await world.readModels.pointer('lines', 1)).toEqual({ live: 2 });
  });

  /** Something happens at the very last moment before the store is asked to decide. */
  const justBefore = (world: Replaying, happens: () => Promise<unknown>): ReadModels => ({
    ...world.readModels,
    markRemoved: async (...parts) => {
      await happens();
      return world.readModels.markRemoved(...parts);
    },
  });

  it('leaves what became live just before it was to be removed, unmarked', async () => {
    const world = await withTwo();
    const racing = justBefore(world, () => rollback(world.readModels, lines));
    expect(await pruneFound(racing, await unusedIn(world))).toEqual([]);
    expect(await world.readModels.pointer('lines', 1)).toEqual({ live: 1, previous: 2 });
    expect(await numbersIn(world.readModels)).toEqual([1, 2]);
    expect(await rollback(world.readModels, lines)).toBe('lines_v1_2');
    expect(await rollback(world.readModels, lines)).toBe('lines_v1_1');
  });

  it('leaves a leftover that a rebuild has just taken up, and the rebuild goes on with it', async () => {
    const world = await withTwo();
    await open(world, 'lines', 1, 3);
    const unused = (await unusedIn(world)).filter(({ generation }) => generation === 3);
    const taken = signal();
    const rebuilding = world.rebuild(lines, {
      onStep: ({ step }) => {
        if (step === 'indexing') taken.give();
      },
    });
    await taken.given;
    expect(await pruneFound(world.readModels, unused)).toEqual([]);
    expect((await rebuilding).generation).toBe('lines_v1_3');
    expect(await world.readModels.pointer('lines', 1)).toEqual({ live: 3, previous: 2 });
    const { generation } = await world.live();
    expect(await documentsOf(generation, lineCollections)).toEqual(plainLines(world.history));
  });

  it('keeps a rebuild from taking up a leftover that it removes, or from switching to it', async () => {
    const world = await withTwo();
    await open(world, 'lines', 1, 3);
    const killed = { ...world.readModels, drop: () => Promise.reject(new Error('killed')) };
    const unused = (await unusedIn(world)).filter(({ generation }) => generation === 3);
    await expect(pruneFound(killed, unused)).rejects.toThrow('killed');
    const pointer = await world.readModels.pointer('lines', 1);
    expect(await world.readModels.point('lines', 1, { live: 3, previous: 2 }, pointer)).toBe(false);
    expect((await world.rebuild()).generation).toBe('lines_v1_4');
  });

  it('removes all of an older version that no older program projects, and that begins anew then', async () => {
    const world = await withTwo();
    const newer = { ...lines, version: 2 };
    await world.rebuild(newer);
    const unused = await unusedGenerations(world.readModels, [newer]);
    const removed = await pruneFound(world.readModels, unused, newer);
    expect([...removed].toSorted()).toEqual(['lines_v1_1', 'lines_v1_2']);
    expect((await world.readModels.generations()).map(generationName)).toEqual(['lines_v2_2']);
    expect(await world.readModels.pointer('lines', 1)).toBeUndefined();
    const older = await world.catchUp(lines);
    expect(older.generation.id.generation).toBe(3);
    expect(await world.readModels.pointer('lines', 1)).toEqual({ live: 3 });
    expect(await documentsOf(older.generation, lineCollections)).toEqual(plainLines(world.history));
    expect((await world.rebuild(lines)).generation).toBe('lines_v1_4');
  });

  it('waits until nobody reads any more what was live a moment ago', async () => {
    const world = await withTwo();
    const dropped = signal<readonly number[]>();
    const readModels: ReadModels = {
      ...world.readModels,
      drop: async (id) => {
        dropped.give(await world.readModels.liveLately('lines', 1, 2_000));
        await world.readModels.drop(id);
      },
    };
    expect(await prune(readModels, [lines], await unusedIn(world))).toEqual(['lines_v1_1']);
    expect(await dropped.given).toEqual([]);
  });
});
