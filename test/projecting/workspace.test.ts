import { randomUUID } from 'node:crypto';
import { write, workspace } from '../../src/projecting/workspace';
import type { DocumentKey, Generation } from '../../src/read-models/read-models';

/** A store that tells what was asked of it; the value of a document is its key unless it was written. */
const store = () => {
  const asked: string[] = [];
  const load: Generation['load'] = async (keys: readonly DocumentKey[]) => {
    asked.push(...keys.map(({ key }) => key));
    return keys.map(({ key }) => ({ value: `stored ${key}` }));
  };
  return { asked, generation: { load } as Generation };
};

const TENANT = randomUUID();

describe('a workspace', () => {
  it('gives what the batch before has written, although the store does not have it yet', async () => {
    const { generation, asked } = store();
    const space = workspace(generation);
    space.begin();
    write(space.slot(TENANT, 'rows', 'a'), { value: 1 });
    expect(space.writes()).toHaveLength(1);
    space.begin();
    const again = space.slot(TENANT, 'rows', 'a');
    await space.load();
    expect(again.document).toEqual({ value: 1 });
    expect(asked).toEqual([]);
    expect(space.writes()).toEqual([]);
  });

  it('forgets what was used long ago, but never what the last batch has touched', async () => {
    const { generation, asked } = store();
    const space = workspace(generation, false, 10);
    for (let batch = 0; batch < 5; batch += 1) {
      space.begin();
      const before = batch === 0 ? [] : Array.from({ length: 8 }, (_, i) => `${batch - 1} ${i}`);
      const slots = before.map((key) => space.slot(TENANT, 'rows', key));
      await space.load();
      expect(slots.map(({ document }) => document)).toEqual(before.map((key) => ({ value: key })));
      for (let i = 0; i < 8; i += 1) {
        const slot = space.slot(TENANT, 'rows', `${batch} ${i}`);
        write(slot, { value: slot.key });
      }
      space.writes();
    }
    expect(asked).toEqual([]);
    space.begin();
    const old = space.slot(TENANT, 'rows', '0 0');
    await space.load();
    expect(asked).toEqual(['0 0']);
    expect(old.document).toEqual({ value: 'stored 0 0' });
  });

  it('asks a new generation only for what it has written itself', async () => {
    const { generation, asked } = store();
    const space = workspace(generation, true, 1);
    space.begin();
    write(space.slot(TENANT, 'rows', 'mine'), { value: 1 });
    space.slot(TENANT, 'rows', 'nobody’s');
    await space.load();
    space.writes();
    for (let i = 0; i < 3; i += 1) {
      space.begin();
      space.slot(TENANT, 'rows', `other ${i}`);
      space.slot(TENANT, 'rows', `another ${i}`);
    }
    space.begin();
    const [mine, others] = [space.slot(TENANT, 'rows', 'mine'), space.slot(TENANT, 'rows', 'nobody’s')];
    asked.length = 0;
    await space.load();
    expect(asked).toEqual(['mine']);
    expect(mine.document).toEqual({ value: 'stored mine' });
    expect(others.document).toBeUndefined();
  });

  it.each([true, false])(
    'says what is new as long as it knows (the generation is empty: %s)',
    async (isEmpty) => {
      const { generation } = store();
      const space = workspace(generation, isEmpty, 1);
      const written = async (...changes: readonly [string, number | undefined][]) => {
        space.begin();
        const slots = changes.map(([key]) => space.slot(TENANT, 'rows', key));
        await space.load();
        slots.forEach((slot, i) => {
          const value = changes[i]?.[1];
          write(slot, value === undefined ? undefined : { value });
        });
        return space.writes().map(({ key, isNew }) => [key, isNew]);
      };
      const gone = isEmpty ? [] : [['gone', false]];
      expect(await written(['a', 1], ['gone', undefined])).toEqual([['a', isEmpty], ...gone]);
      expect(await written(['a', 2], ['gone', 2])).toEqual([
        ['a', false],
        ['gone', isEmpty],
      ]);
      expect(await written(['b', 1], ['c', 1])).toEqual([
        ['b', isEmpty],
        ['c', isEmpty],
      ]);
      await written(['d', 1], ['e', 1]);
      await written(['f', 1], ['g', 1]);
      expect(await written(['a', 3], ['a', undefined])).toEqual([['a', false]]);
    },
  );
});
