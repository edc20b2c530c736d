import '../support/own-suspension';
import { join } from 'node:path';
import { sqliteReadModels } from '../../src/read-models/sqlite/sqlite-read-models';
import { writerInPlace } from '../../src/read-models/sqlite/writer-in-place';
import { openForWriting } from '../../src/sqlite/database';
import { holdWrites, resumeWrites } from '../../src/sqlite/suspension';
import { freshFolder } from '../support/folders';

const WITHIN_MS = 10_000;

const writers = [
  ['in a thread', undefined],
  ['in place', writerInPlace],
] as const;

describe.each(writers)('a process that is about to be stopped, with a writer %s', (_, startWriter) => {
  afterEach(resumeWrites);

  it('ends what was put off, begins nothing else, and goes on afterwards', async () => {
    const folder = freshFolder();
    const readModels = await sqliteReadModels(folder, startWriter);
    const id = { projection: 'counter', version: 1, generation: 1 };
    const generation = await readModels.open(id, [{ name: 'counts', indexes: {} }], 'log');
    const commit = (n: number, more: boolean): Promise<boolean> =>
      generation.commit(
        n,
        { position: String(n), eventId: String(n) },
        [{ tenantId: 't', collection: 'counts', key: String(n), document: { n } }],
        more,
      );
    const other = openForWriting(join(folder, 'counter_v1_1.db'), 'NORMAL');
    other.exec('PRAGMA busy_timeout = 0');
    const canWrite = (): boolean => {
      try {
        other.exec('BEGIN IMMEDIATE; ROLLBACK');
        return true;
      } catch {
        return false;
      }
    };

    expect(await commit(0, true)).toBe(true);
    expect(canWrite()).toBe(false);
    expect(await holdWrites(0)).toBe(false);
    expect(await commit(1, true)).toBe(true);
    expect(canWrite()).toBe(true);
    expect(await holdWrites(WITHIN_MS)).toBe(true);

    let isCommitted = false;
    const held = commit(2, false).then((done) => (isCommitted = done));
    const leased = readModels.lease('something', 'me', 1_000);
    expect(await holdWrites(WITHIN_MS)).toBe(true);
    expect(isCommitted).toBe(false);
    expect(canWrite()).toBe(true);
    resumeWrites();
    expect(await held).toBe(true);
    expect(await leased).toBe(true);
    await generation.settle();
    expect(await generation.control()).toMatchObject({ n: 3, applied: '2' });
    other.close();
    await readModels.close();
  });

  it('may be asked to settle what it has settled already', async () => {
    const readModels = await sqliteReadModels(freshFolder(), startWriter);
    const id = { projection: 'counter', version: 1, generation: 1 };
    const generation = await readModels.open(id, [{ name: 'counts', indexes: {} }], 'log');
    await generation.commit(0, undefined, [], true);
    expect(await holdWrites(0)).toBe(false);
    await generation.commit(1, undefined, [], true);
    resumeWrites();
    await generation.settle();
    expect(await generation.control()).toMatchObject({ n: 2 });
    await readModels.close();
  });
});
