import { projectingLease } from '../../src/projecting/lease';
import { prune, unusedGenerations } from '../../src/projecting/prune';
import { rollback } from '../../src/projecting/rebuild';
import { generationName } from '../../src/read-models/read-models';
import { lineCollections, plainLines } from './lines';
import { lines, numbersIn, replaying, someTenants, type Replaying } from './replay';
import { documentsOf } from './world';

const unusedIn = async ({ readModels }: Replaying) => unusedGenerations(readModels, [lines]);
const namesIn = async (world: Replaying) => (await unusedIn(world)).map(generationName).toSorted();
const pruneAll = async (world: Replaying) => prune(world.readModels, [lines], await unusedIn(world));

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
    await expect(prune(killed, [lines], await unusedIn(world))).rejects.toThrow('killed');
    expect(await world.readModels.pointer('lines', 1)).toEqual({ live: 1 });
    expect(await numbersIn(world.readModels)).toEqual([1, 2]);
    expect((await world.rebuild()).generation).toBe('lines_v1_3');
    expect([...(await pruneAll(world))].toSorted()).toEqual(['lines_v1_1', 'lines_v1_2']);
  });

  it('leaves what became live while the operator was asked', async () => {
    const world = await withTwo();
    const unused = await unusedIn(world);
    await rollback(world.readModels, lines);
    expect(await prune(world.readModels, [lines], unused)).toEqual([]);
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
    expect(await prune(world.readModels, [lines], unused)).toEqual([]);
    expect(await numbersIn(world.readModels)).toEqual([1, 2, 3]);
  });

  it('is not overtaken by a rollback to what it removes', async () => {
    const world = await withTwo();
    const killed = { ...world.readModels, point: () => Promise.reject(new Error('killed')) };
    await expect(prune(killed, [lines], await unusedIn(world))).rejects.toThrow('killed');
    await expect(rollback(world.readModels, lines)).rejects.toMatchObject({
      code: 'nothing_to_roll_back_to',
    });
  });

  it('leaves what became live just before it was to be removed', async () => {
    const world = await withTwo();
    const unused = await unusedIn(world);
    const racing = {
      ...world.readModels,
      ask: async (...parts: Parameters<typeof world.readModels.ask>) => {
        await rollback(world.readModels, lines);
        return world.readModels.ask(...parts);
      },
    };
    expect(await prune(racing, [lines], unused)).toEqual([]);
    expect(await world.readModels.pointer('lines', 1)).toEqual({ live: 1, previous: 2 });
    expect(await numbersIn(world.readModels)).toEqual([1, 2]);
  });

  it('leaves what is switched to at the last moment', async () => {
    const world = await withTwo();
    const unused = await unusedIn(world);
    const racing = {
      ...world.readModels,
      point: async (...parts: Parameters<typeof world.readModels.point>) => {
        await world.readModels.point('lines', 1, { live: 1, previous: 2 }, { live: 2, previous: 1 });
        return world.readModels.point(...parts);
      },
    };
    expect(await prune(racing, [lines], unused)).toEqual([]);
    expect(await numbersIn(world.readModels)).toEqual([1, 2]);
  });
});
