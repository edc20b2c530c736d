import { projectingLease } from '../../src/projecting/lease';
import { prune, unusedGenerations } from '../../src/projecting/prune';
import { rollback } from '../../src/projecting/rebuild';
import { generationName, type GenerationId, type ReadModels } from '../../src/read-models/read-models';
import { lineCollections, plainLines } from './lines';
import { deferred } from '../support/waiting';
import { lines, numbersIn, replayHarness, someTenants, type ReplayHarness } from './replay';
import { documentsOf } from './harness';

const unusedIn = async ({ readModels }: ReplayHarness) => unusedGenerations(readModels, [lines]);
const namesIn = async (harness: ReplayHarness) => (await unusedIn(harness)).map(generationName).toSorted();
const pruneFound = (readModels: ReadModels, found: readonly GenerationId[], known = lines) =>
  prune(readModels, [known], found, 0);
const pruneAll = async (harness: ReplayHarness) => pruneFound(harness.readModels, await unusedIn(harness));

const open = async (
  { readModels, log }: ReplayHarness,
  projection: string,
  version: number,
  generation: number,
) => readModels.open({ projection, version, generation }, lines.collections, await log.identity());

const withTwo = async (): Promise<ReplayHarness> => {
  const harness = await replayHarness();
  await someTenants(harness);
  await harness.catchUp();
  await harness.rebuild();
  return harness;
};

describe('prune', () => {
  it('removes nothing if there is only the live generation', async () => {
    const harness = await replayHarness();
    await harness.live();
    expect(await pruneAll(harness)).toEqual([]);
    expect(await numbersIn(harness.readModels)).toEqual([1]);
  });

  it('removes the previous generation, leftovers of killed rebuilds and older versions; nothing else', async () => {
    const harness = await withTwo();
    await open(harness, 'lines', 1, 7);
    const newer = { ...lines, version: 3 };
    for (const version of [2, 3, 4]) await open(harness, 'lines', version, 1);
    await open(harness, 'strangers', 1, 1);
    await harness.readModels.point('lines', 3, { live: 1 }, undefined);
    expect(await namesIn(harness)).toEqual(['lines_v1_1', 'lines_v1_7']);
    expect((await unusedGenerations(harness.readModels, [newer])).map(generationName).toSorted()).toEqual([
      'lines_v1_1',
      'lines_v1_2',
      'lines_v1_7',
      'lines_v2_1',
    ]);
    expect([...(await pruneAll(harness))].toSorted()).toEqual(['lines_v1_1', 'lines_v1_7']);
    const left = (await harness.readModels.generations()).map(generationName).toSorted();
    expect(left).toEqual(['lines_v1_2', 'lines_v2_1', 'lines_v3_1', 'lines_v4_1', 'strangers_v1_1']);
    expect(await harness.readModels.pointer('lines', 1)).toEqual({ live: 2 });
    const { generation } = await harness.live();
    expect(await documentsOf(generation, lineCollections)).toEqual(plainLines(harness.history));
    await expect(rollback(harness.readModels, lines)).rejects.toMatchObject({
      code: 'nothing_to_roll_back_to',
    });
  });

  it('keeps everything of a projection that is being rebuilt', async () => {
    const harness = await withTwo();
    await open(harness, 'lines', 1, 3);
    await harness.readModels.lease('rebuild lines', 'somebody', 60_000);
    expect(await namesIn(harness)).toEqual([]);
    await harness.readModels.release('rebuild lines', 'somebody');
    expect(await namesIn(harness)).toEqual(['lines_v1_1', 'lines_v1_3']);
  });

  it('keeps the versions that an older program projects beside this one', async () => {
    const harness = await withTwo();
    const newer = { ...lines, version: 2 };
    await harness.readModels.lease(projectingLease('lines', 1), 'somebody', 60_000);
    expect(await unusedGenerations(harness.readModels, [newer])).toEqual([]);
    await harness.readModels.release(projectingLease('lines', 1), 'somebody');
    expect(await unusedGenerations(harness.readModels, [newer])).toHaveLength(2);
  });

  it('killed halfway leaves nothing that a rebuild would resume', async () => {
    const harness = await withTwo();
    await rollback(harness.readModels, lines);
    const killed = { ...harness.readModels, drop: () => Promise.reject(new Error('killed')) };
    await expect(pruneFound(killed, await unusedIn(harness))).rejects.toThrow('killed');
    expect(await harness.readModels.pointer('lines', 1)).toEqual({ live: 1 });
    expect(await numbersIn(harness.readModels)).toEqual([1, 2]);
    expect((await harness.rebuild()).generation).toBe('lines_v1_3');
    expect([...(await pruneAll(harness))].toSorted()).toEqual(['lines_v1_1', 'lines_v1_2']);
  });

  it('keeps a generation that became live while the operator was asked to confirm', async () => {
    const harness = await withTwo();
    const unused = await unusedIn(harness);
    await rollback(harness.readModels, lines);
    expect(await pruneFound(harness.readModels, unused)).toEqual([]);
    expect(await harness.readModels.pointer('lines', 1)).toEqual({ live: 1, previous: 2 });
    expect(await numbersIn(harness.readModels)).toEqual([1, 2]);
    const { generation } = await harness.live();
    expect(await documentsOf(generation, lineCollections)).toEqual(plainLines(harness.history));
  });

  it('keeps a generation that a rebuild resumed while the operator was asked to confirm', async () => {
    const harness = await withTwo();
    await open(harness, 'lines', 1, 3);
    const unused = await unusedIn(harness);
    await harness.readModels.lease('rebuild lines', 'somebody', 60_000);
    expect(await pruneFound(harness.readModels, unused)).toEqual([]);
    expect(await numbersIn(harness.readModels)).toEqual([1, 2, 3]);
  });

  it('decides atomically: a rollback comes before it or is refused', async () => {
    const harness = await withTwo();
    const killed = { ...harness.readModels, drop: () => Promise.reject(new Error('killed')) };
    await expect(pruneFound(killed, await unusedIn(harness))).rejects.toThrow('killed');
    await expect(rollback(harness.readModels, lines)).rejects.toMatchObject({
      code: 'nothing_to_roll_back_to',
    });
    expect(await harness.readModels.pointer('lines', 1)).toEqual({ live: 2 });
  });

  /** Runs something at the very last moment before the store decides. */
  const justBefore = (harness: ReplayHarness, happens: () => Promise<unknown>): ReadModels => ({
    ...harness.readModels,
    markRemoved: async (...parts) => {
      await happens();
      return harness.readModels.markRemoved(...parts);
    },
  });

  it('keeps a generation that became live just before its removal, unmarked', async () => {
    const harness = await withTwo();
    const racing = justBefore(harness, () => rollback(harness.readModels, lines));
    expect(await pruneFound(racing, await unusedIn(harness))).toEqual([]);
    expect(await harness.readModels.pointer('lines', 1)).toEqual({ live: 1, previous: 2 });
    expect(await numbersIn(harness.readModels)).toEqual([1, 2]);
    expect(await rollback(harness.readModels, lines)).toBe('lines_v1_2');
    expect(await rollback(harness.readModels, lines)).toBe('lines_v1_1');
  });

  it('keeps a leftover that a rebuild has just taken over, and the rebuild continues with it', async () => {
    const harness = await withTwo();
    await open(harness, 'lines', 1, 3);
    const unused = (await unusedIn(harness)).filter(({ generation }) => generation === 3);
    const taken = deferred();
    const rebuilding = harness.rebuild(lines, {
      onStep: ({ step }) => {
        if (step === 'indexing') taken.resolve();
      },
    });
    await taken.promise;
    expect(await pruneFound(harness.readModels, unused)).toEqual([]);
    expect((await rebuilding).generation).toBe('lines_v1_3');
    expect(await harness.readModels.pointer('lines', 1)).toEqual({ live: 3, previous: 2 });
    const { generation } = await harness.live();
    expect(await documentsOf(generation, lineCollections)).toEqual(plainLines(harness.history));
  });

  it('stops a rebuild from taking over a leftover that it removes, or from switching to it', async () => {
    const harness = await withTwo();
    await open(harness, 'lines', 1, 3);
    const killed = { ...harness.readModels, drop: () => Promise.reject(new Error('killed')) };
    const unused = (await unusedIn(harness)).filter(({ generation }) => generation === 3);
    await expect(pruneFound(killed, unused)).rejects.toThrow('killed');
    const pointer = await harness.readModels.pointer('lines', 1);
    expect(await harness.readModels.point('lines', 1, { live: 3, previous: 2 }, pointer)).toBe(false);
    expect((await harness.rebuild()).generation).toBe('lines_v1_4');
  });

  it('removes all of an older version that no program projects; the older program then starts from scratch', async () => {
    const harness = await withTwo();
    const newer = { ...lines, version: 2 };
    await harness.rebuild(newer);
    const unused = await unusedGenerations(harness.readModels, [newer]);
    const removed = await pruneFound(harness.readModels, unused, newer);
    expect([...removed].toSorted()).toEqual(['lines_v1_1', 'lines_v1_2']);
    expect((await harness.readModels.generations()).map(generationName)).toEqual(['lines_v2_2']);
    expect(await harness.readModels.pointer('lines', 1)).toBeUndefined();
    const older = await harness.catchUp(lines);
    expect(older.generation.id.generation).toBe(3);
    expect(await harness.readModels.pointer('lines', 1)).toEqual({ live: 3 });
    expect(await documentsOf(older.generation, lineCollections)).toEqual(plainLines(harness.history));
    expect((await harness.rebuild(lines)).generation).toBe('lines_v1_4');
  });

  it('waits until nobody reads a generation that was live a moment ago', async () => {
    const harness = await withTwo();
    const dropped = deferred<readonly number[]>();
    const readModels: ReadModels = {
      ...harness.readModels,
      drop: async (id) => {
        dropped.resolve(await harness.readModels.liveLately('lines', 1, 2_000));
        await harness.readModels.drop(id);
      },
    };
    expect(await prune(readModels, [lines], await unusedIn(harness))).toEqual(['lines_v1_1']);
    expect(await dropped.promise).toEqual([]);
  });
});
