import '../support/own-suspension';
import { join } from 'node:path';
import { sqliteReadModels } from '../../src/read-models/sqlite/sqlite-read-models';
import { writerInPlace } from '../../src/read-models/sqlite/writer-in-place';
import { openForWriting } from '../../src/sqlite/database';
import { holdWrites, resumeWrites } from '../../src/sqlite/suspension';
import { freshFolder } from '../support/folders';
import { createAndOpen } from '../support/generations';

const WITHIN_MS = 10_000;

const writers = [
  ['in a thread', {}],
  ['in place', { startWriter: writerInPlace }],
] as const;

describe.each(writers)('a process about to be suspended, with a writer %s', (_, options) => {
  afterEach(resumeWrites);

  it('starts no other write, and continues afterwards', async () => {
    const folder = freshFolder();
    const readModels = sqliteReadModels(folder, options);
    const id = { projection: 'counter', version: 1, generation: 'one' };
    const generation = await createAndOpen(readModels, id, [{ name: 'counts', indexes: {} }], 'log');
    const commit = (n: number): Promise<boolean> =>
      generation.commit(n, { position: String(n), eventId: String(n) }, [
        { tenantId: 't', collection: 'counts', key: String(n), document: { n } },
      ]);
    const other = openForWriting(join(folder, 'counter_v1_one.db'), 'NORMAL');
    other.exec('PRAGMA busy_timeout = 0');
    const canWrite = (): boolean => {
      try {
        other.exec('BEGIN IMMEDIATE; ROLLBACK');
        return true;
      } catch {
        return false;
      }
    };

    expect(await commit(0)).toBe(true);
    expect(canWrite()).toBe(true);
    expect(await holdWrites(WITHIN_MS)).toBe(true);

    let isCommitted = false;
    const held = commit(1).then((done) => (isCommitted = done));
    const leased = readModels.lease(['something'], 'me');
    expect(await holdWrites(WITHIN_MS)).toBe(true);
    expect(isCommitted).toBe(false);
    expect(canWrite()).toBe(true);
    resumeWrites();
    expect(await held).toBe(true);
    expect(await leased).toEqual(new Set(['something']));
    expect(await generation.control()).toMatchObject({ n: 2, applied: '1' });
    other.close();
    await readModels.close();
  });
});
