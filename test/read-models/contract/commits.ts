import { PARKED, type Write } from '../../../src/read-models/read-models';
import {
  at,
  before,
  change,
  collections,
  gone,
  id,
  LOG,
  note,
  ONE,
  put,
  stateOf,
  TWO,
  type Harness,
} from './harness';

/** A commit is atomic and succeeds only at the current number; it is visible when it resolves. */
export const commitsContract = (harness: Harness): void => {
  const { again, openIn, createIn, fresh, filled } = harness;

  describe('a commit', () => {
    it('writes all documents and moves the control state', async () => {
      const generation = await filled(...before);
      expect(await generation.control()).toEqual({
        n: 1,
        to: at(1),
        applied: at(1).position,
        log: LOG,
      });
      expect(await generation.commit(1, at(7), change)).toBe(true);
      expect(await generation.control()).toMatchObject({ n: 2, to: at(7), applied: at(7).position });
      expect(await generation.reader.get(ONE, 'notes', 'changed')).toEqual({
        shelf: 'b',
        place: 2,
        text: 'new',
      });
      expect(await generation.reader.get(ONE, 'notes', 'removed')).toBeUndefined();
      expect(await generation.reader.get(ONE, 'notes', 'kept')).toEqual({ shelf: 'a', place: 1 });
      expect(await generation.reader.get(ONE, PARKED, 'tenant')).toEqual({ reason: 'new' });
    });

    it('without a checkpoint counts, and leaves the checkpoint where it was', async () => {
      const generation = await filled(...before);
      expect(await generation.commit(1, undefined, [gone(TWO, PARKED, 'tenant')])).toBe(true);
      expect(await generation.control()).toMatchObject({ n: 2, to: at(1), applied: at(1).position });
    });

    it('without documents moves the control state', async () => {
      const generation = await fresh();
      expect(await generation.commit(0, at(5), [])).toBe(true);
      expect(await generation.control()).toMatchObject({ n: 1, to: at(5) });
    });

    it.each([0, 2, 99])('is refused when %i is not the current n', async (n) => {
      const generation = await filled(...before);
      const state = await stateOf(generation);
      expect(await generation.commit(n, at(9), change)).toBe(false);
      expect(await stateOf(generation)).toEqual(state);
    });

    it('wins alone among many with the same n', async () => {
      const others = [harness.store.readModels, await again(), await again()];
      await fresh();
      const generations = await Promise.all(others.map((models) => openIn(models)));
      for (let n = 0; n < 10; n++) {
        const outcomes = await Promise.all(
          generations.flatMap((generation, i) =>
            [0, 1].map((j) =>
              generation.commit(n, at(10 * n + 2 * i + j), [
                note(ONE, 'winner', { who: `${i} ${j}` }),
                note(TWO, `winner ${n}`, { who: `${i} ${j}` }),
              ]),
            ),
          ),
        );
        expect(outcomes.filter(Boolean)).toHaveLength(1);
        const winner = outcomes.indexOf(true);
        const who = `${Math.floor(winner / 2)} ${winner % 2}`;
        const control = await generations[0]!.control();
        expect(control).toMatchObject({ n: n + 1, to: at(10 * n + winner) });
        expect(await generations[1]!.reader.get(ONE, 'notes', 'winner')).toEqual({ who });
        expect(await generations[2]!.reader.get(TWO, 'notes', `winner ${n}`)).toEqual({ who });
      }
    });

    it('to an unknown collection writes nothing', async () => {
      const generation = await filled(...before);
      const state = await stateOf(generation);
      await expect(generation.commit(1, at(2), [...change, put(ONE, 'nowhere', 'a', {})])).rejects.toThrow(
        /nowhere/,
      );
      expect(await stateOf(generation)).toEqual(state);
    });

    it('of thousands of documents is atomic', async () => {
      const generation = await fresh();
      const many = Array.from({ length: 3_000 }, (_, i) => note(ONE, `n${i}`, { i, shelf: 'x'.repeat(50) }));
      expect(await generation.commit(0, at(1), many)).toBe(true);
      expect(await generation.reader.find(ONE, 'notes', { limit: 10_000 })).toHaveLength(3_000);
    });

    it('survives reopening the store', async () => {
      const generation = await filled(...before);
      await generation.commit(1, at(2), change);
      const state = await stateOf(generation);
      await harness.closeAll();
      expect(await stateOf(await openIn(await again()))).toEqual(state);
    });
  });

  it('a commit is visible to every reader when it resolves', async () => {
    const [here, there] = [await fresh(), await openIn(await again())];
    for (let n = 0; n < 20; n += 1) {
      const [writer, onlooker] = n % 2 === 0 ? [here, there] : [there, here];
      expect(await writer.commit(n, at(n + 1), [note(ONE, 'a', { shelf: 's', place: n })])).toBe(true);
      for (const one of [writer, onlooker]) {
        expect(await one.reader.get(ONE, 'notes', 'a')).toEqual({ shelf: 's', place: n });
        expect(await one.load([note(ONE, 'a', {})])).toEqual([{ shelf: 's', place: n }]);
        const query = { index: 'by_shelf', equal: ['s'], limit: 9 };
        expect(await one.reader.find(ONE, 'notes', query)).toEqual([{ shelf: 's', place: n }]);
        expect(await one.control()).toMatchObject({ n: n + 1, applied: at(n + 1).position });
      }
    }
  });

  describe('the bytes of a commit', () => {
    const within = async (maxCommitBytes: number, how: 'open' | 'build') => {
      const readModels = await harness.store.openWithin(maxCommitBytes);
      await readModels.create(id('notes'), collections, LOG);
      const target = await readModels[how](id('notes'), collections);
      return { readModels, target };
    };
    const bytesOf = ({ tenantId, key, document }: Write): number =>
      Buffer.byteLength(tenantId) + Buffer.byteLength(key) + Buffer.byteLength(JSON.stringify(document));
    const long = note(ONE, 'long', { text: 'é漢😀'.repeat(100) });

    it('have a stated bound, which allows at least a few large documents', async () => {
      expect((await fresh()).maxCommitBytes).toBeGreaterThanOrEqual(1_048_576);
    });

    it.each(['open', 'build'] as const)('may reach it, but not exceed it: %s', async (how) => {
      const { readModels, target } = await within(bytesOf(long), how);
      try {
        expect(target.maxCommitBytes).toBe(bytesOf(long));
        await expect(target.commit(0, at(1), [long, note(TWO, '', {})])).rejects.toMatchObject({
          code: 'commit_too_large',
        });
        expect((await target.control()).n).toBe(0);
        expect(await target.commit(0, at(1), [long])).toBe(true);
        expect(await target.load([long])).toEqual([long.document]);
      } finally {
        await readModels.close();
      }
    });
  });

  it('a failed commit gives no tenant the documents of another', async () => {
    const generation = await fresh();
    const [three, four] = ['33333333-3333-4333-8333-333333333333', '44444444-4444-4444-8444-444444444444'];
    for (let k = 1; ; k += 1) {
      const { n } = await generation.control();
      harness.store.failAt(k);
      const outcome = await generation
        .commit(n, at(n + 1), [note(three, 'a', { of: 'three' })])
        .catch(() => 'failed');
      harness.store.failAt(0);
      if (outcome !== 'failed') break;
      const next = (await generation.control()).n;
      expect(await generation.commit(next, at(next + 1), [note(four, `a${k}`, { of: 'four' })])).toBe(true);
      expect(await generation.commit(next + 1, at(next + 2), [note(three, 'b', { of: 'three' })])).toBe(true);
      expect(await generation.reader.get(four, 'notes', 'b')).toBeUndefined();
      expect(await generation.reader.get(three, 'notes', 'b')).toEqual({ of: 'three' });
      expect(await generation.reader.get(three, 'notes', `a${k}`)).toBeUndefined();
      await generation.commit(next + 2, at(next + 3), [gone(three, 'notes', 'b')]);
    }
  });

  it('a failure at any write point leaves either the old state or the new one', async () => {
    const generationOf = async (number: number) => {
      const generation = await createIn(harness.store.readModels, id('notes', 1, `n${number}`));
      await generation.commit(0, at(1), before);
      return generation;
    };
    const whole = await generationOf(1);
    const oldState = await stateOf(whole);
    harness.store.failAt(Number.POSITIVE_INFINITY);
    expect(await whole.commit(1, at(2), change)).toBe(true);
    const points = harness.store.reached();
    const newState = await stateOf(whole);
    // At least one for each collection and one for the control state.
    expect(points).toBeGreaterThanOrEqual(4);

    let hit = 0;
    for (let k = 1; k <= points; k++) {
      const generation = await generationOf(1 + k);
      harness.store.failAt(k);
      const outcome = await generation.commit(1, at(2), change).catch(() => 'failed');
      if (harness.store.reached() >= k) hit += 1;
      expect([true, 'failed']).toContain(outcome);
      harness.store.failAt(Number.POSITIVE_INFINITY);

      const elsewhere = await openIn(await again(), generation.id);
      const state = await stateOf(elsewhere);
      const isNew = state.control.n === newState.control.n;
      expect(state).toEqual(isNew ? newState : oldState);
      if (outcome === true) expect(isNew).toBe(true);
      expect(await stateOf(generation)).toEqual(state);

      expect(await generation.commit(1, at(2), change)).toBe(!isNew);
      expect(await stateOf(generation)).toEqual(newState);
      expect(await generation.commit(2, at(3), [])).toBe(true);
    }
    expect(hit).toBe(points);
  });

  describe('a snapshot', () => {
    const keys = [ONE, TWO].map((tenantId) => ({ tenantId, collection: 'counts', key: 'n' }));

    it('returns the control state and the documents in the order requested', async () => {
      const generation = await filled(put(TWO, 'counts', 'n', { count: 2 }));
      expect(await generation.snapshot([...keys, { tenantId: TWO, collection: 'notes', key: 'x' }])).toEqual({
        control: await generation.control(),
        documents: [undefined, { count: 2 }, undefined],
      });
      expect((await generation.snapshot([])).documents).toEqual([]);
      await expect(generation.snapshot([{ tenantId: ONE, collection: 'nowhere', key: 'a' }])).rejects.toThrow(
        /nowhere/,
      );
      expect((await generation.snapshot(keys)).documents).toHaveLength(2);
    });

    it('is consistent while another process commits', async () => {
      const generation = await fresh();
      const writing = await openIn(await again());
      let done = false;
      const commits = (async () => {
        for (let n = 0; n < 60; n++)
          expect(
            await writing.commit(n, at(n + 1), [
              put(ONE, 'counts', 'n', { count: n + 1 }),
              put(TWO, 'counts', 'n', { count: n + 1 }),
            ]),
          ).toBe(true);
      })().finally(() => (done = true));
      commits.catch(() => undefined);
      for (; !done; await new Promise((resolve) => setImmediate(resolve))) {
        const { control, documents } = await generation.snapshot(keys);
        const expected = control.n === 0 ? undefined : { count: control.n };
        expect(documents).toEqual([expected, expected]);
      }
      await commits;
      expect((await generation.snapshot(keys)).control.n).toBe(60);
    });
  });
};
