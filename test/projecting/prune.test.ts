import { projectingLease } from '../../src/projecting/lease';
import { prune, removeFormerlyLive, unusedGenerations } from '../../src/projecting/prune';
import { generationName, type GenerationId, type ReadModels } from '../../src/read-models/read-models';
import { createAndOpen } from '../support/generations';
import { deferred } from '../support/waiting';
import { lineCollections, plainLines } from './lines';
import { lines, liveIn, numbersIn, replayHarness, someTenants, type ReplayHarness } from './replay';
import { documentsOf, nth, numbered } from './harness';

const unusedIn = async ({ readModels }: ReplayHarness, known = lines) =>
  unusedGenerations(readModels, [known]);
const numbersOf = (names: readonly string[]) => names.map(numbered).toSorted();
const namesIn = async (harness: ReplayHarness, known = lines) =>
  numbersOf((await unusedIn(harness, known)).map(generationName));
const pruneFound = (readModels: ReadModels, found: readonly GenerationId[], known = lines) =>
  prune(readModels, [known], found, 0).then(numbersOf);
const pruneAll = async (harness: ReplayHarness) => pruneFound(harness.readModels, await unusedIn(harness));

const create = async (
  { readModels, log }: ReplayHarness,
  projection = 'lines',
  version = 1,
  generation = 'left',
) => createAndOpen(readModels, { projection, version, generation }, lines.collections, await log.identity());

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
    expect(await numbersIn(harness.readModels)).toEqual(['lines_v1_1']);
  });

  it('removes what was live before, leftovers of killed rebuilds and older versions; nothing else', async () => {
    const harness = await withTwo();
    await create(harness);
    const newer = { ...lines, version: 3 };
    for (const version of [2, 3, 4]) await create(harness, 'lines', version);
    await create(harness, 'strangers');
    await harness.readModels.makeLive(nth(1, 'lines', 3), undefined);
    expect(await namesIn(harness)).toEqual(['lines_v1_1', 'lines_v1_3']);
    expect(await namesIn(harness, newer)).toEqual(['lines_v1_1', 'lines_v1_2', 'lines_v1_3', 'lines_v2_1']);
    expect(await pruneAll(harness)).toEqual(['lines_v1_1', 'lines_v1_3']);
    expect(await numbersIn(harness.readModels)).toEqual([
      'lines_v1_2',
      'lines_v2_1',
      'lines_v3_1',
      'lines_v4_1',
      'strangers_v1_1',
    ]);
    expect(await liveIn(harness.readModels)).toBe('lines_v1_2');
    const { generation } = await harness.live();
    expect(await documentsOf(generation, lineCollections)).toEqual(plainLines(harness.history));
  });

  it('keeps everything of a projection that is being rebuilt', async () => {
    const harness = await withTwo();
    await create(harness);
    await harness.readModels.lease(['rebuild lines'], 'somebody');
    expect(await namesIn(harness)).toEqual([]);
    await harness.readModels.release(['rebuild lines'], 'somebody');
    expect(await namesIn(harness)).toEqual(['lines_v1_1', 'lines_v1_3']);
  });

  it('keeps the versions that an older program projects beside this one', async () => {
    const harness = await withTwo();
    const newer = { ...lines, version: 2 };
    await harness.readModels.lease([projectingLease('lines', 1)], 'somebody');
    expect(await unusedIn(harness, newer)).toEqual([]);
    await harness.readModels.release([projectingLease('lines', 1)], 'somebody');
    expect(await unusedIn(harness, newer)).toHaveLength(2);
  });

  it('keeps a generation that became live just before its removal', async () => {
    const harness = await withTwo();
    const racing: ReadModels = {
      ...harness.readModels,
      remove: async (...dependencies) => {
        await harness.readModels.makeLive(nth(1), nth(2).generation);
        return harness.readModels.remove(...dependencies);
      },
    };
    expect(await pruneFound(racing, await unusedIn(harness))).toEqual([]);
    expect(await liveIn(harness.readModels)).toBe('lines_v1_1');
  });

  it('keeps a leftover that a rebuild has just taken over, and the rebuild continues with it', async () => {
    const harness = await withTwo();
    await create(harness);
    const unused = (await unusedIn(harness)).filter(({ generation }) => generation === 'left');
    const taken = deferred();
    const rebuilding = harness.rebuild(lines, {
      onStep: ({ step }) => {
        if (step === 'indexing') taken.resolve();
      },
    });
    await taken.promise;
    expect(await pruneFound(harness.readModels, unused)).toEqual([]);
    expect((await rebuilding).generation).toBe('lines_v1_left');
    const { generation } = await harness.live();
    expect(await documentsOf(generation, lineCollections)).toEqual(plainLines(harness.history));
  });

  it('removes all of an older version that no program projects; the older program then starts from scratch', async () => {
    const harness = await withTwo();
    const newer = { ...lines, version: 2 };
    await harness.rebuild(newer);
    const unused = await unusedIn(harness, newer);
    expect(await pruneFound(harness.readModels, unused, newer)).toEqual(['lines_v1_1', 'lines_v1_2']);
    expect(await numbersIn(harness.readModels)).toEqual(['lines_v2_1']);
    const older = await harness.catchUp(lines);
    expect(await liveIn(harness.readModels)).toBe('lines_v1_3');
    expect(await documentsOf(older.generation, lineCollections)).toEqual(plainLines(harness.history));
  });

  it('waits until nobody reads a generation that was live a moment ago', async () => {
    const harness = await withTwo();
    let leftMs: number | undefined;
    const readModels: ReadModels = {
      ...harness.readModels,
      remove: async (id, unless) => {
        const { generations } = await harness.readModels.state();
        leftMs = generations.find(({ generation }) => generation === id.generation)?.leftMs;
        return harness.readModels.remove(id, unless);
      },
    };
    expect(numbersOf(await prune(readModels, [lines], await unusedIn(harness)))).toEqual(['lines_v1_1']);
    expect(leftMs).toBeGreaterThan(2_000);
  });
});

describe('the process that projects', () => {
  it('removes what was live once nobody can read it, and nothing else', async () => {
    const harness = await withTwo();
    await create(harness);
    const { generations } = await harness.readModels.state();
    const after = (ms: number) =>
      generations.map((row) => (row.leftMs === undefined ? row : { ...row, leftMs: ms }));
    await removeFormerlyLive(harness.readModels, [lines], after(5_000));
    expect(await numbersIn(harness.readModels)).toHaveLength(3);
    // The store itself looks at the time as well.
    await removeFormerlyLive(harness.readModels, [lines], after(60_000));
    expect(await numbersIn(harness.readModels)).toHaveLength(3);
    const later: ReadModels = {
      ...harness.readModels,
      remove: (id, unless) => harness.readModels.remove(id, { ...unless, leftWithinMs: 0 }),
    };
    await removeFormerlyLive(later, [{ ...lines, version: 2 }], after(60_000));
    expect(await numbersIn(harness.readModels)).toHaveLength(3);
    await removeFormerlyLive(later, [lines], after(60_000));
    expect(await numbersIn(harness.readModels)).toEqual(['lines_v1_2', 'lines_v1_3']);
  });
});
