import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { projections } from '../../projections/projections';
import { tenants } from '../../projections/tenants';
import type { EventLog, Head } from '../../src/event-log/event-log';
import { exists, openLive, openLiveGenerations, provideLive } from '../../src/projecting/live-generations';
import { generationName, type ReadModels } from '../../src/read-models/read-models';
import { openForWriting } from '../../src/sqlite/database';
import { closeAll } from '../support/closing';
import { freshFolder } from '../support/folders';
import { liveOf } from '../support/generations';
import { isClustered } from '../support/profile';
import { created, numbered, openLog, openProcess, openReadModels, streams, updated } from './harness';

const STREAM = streams.tenant(randomUUID());
const HELP: Readonly<Record<string, RegExp>> = {
  sqlite: /Check STREAM_PREFIX and DATA_DIR: .* move the folder of the read models away and start again/,
  mongodb: /Check EVENTSTORE_URL, STREAM_PREFIX and MONGODB_URL: .* name another database/,
};
const REFUSED = /^The event .* rolled back.*run `tenant-ledger projections rebuild`/;

/** A log and read models that are up to date with it, in their own folders, closed. */
const built = async () => {
  const folders = { log: freshFolder(), readModels: freshFolder() };
  const log = await openLog(folders.log);
  await log.record(STREAM, created());
  const { position } = await log.record(STREAM, updated('a'));
  const process = await openProcess(log, await openReadModels(folders.readModels), projections);
  expect(await process.catchUp(position, 10_000)).toBe(true);
  await closeAll();
  return folders;
};

const provide = async (readModels: ReadModels, log: EventLog): Promise<void> => {
  for (const projector of projections) await provideLive({ projector, readModels, log });
};

const open = async (folders: { log: string; readModels: string }) =>
  openLiveGenerations(projections, await openReadModels(folders.readModels), await openLog(folders.log));

/** Edits the file of the log from outside. */
const tamper = (folder: string, sql: string): void => {
  const db = openForWriting(join(folder, 'events.db'), 'FULL');
  db.exec(sql);
  db.close();
};

describe('the live generations', () => {
  it('are provided at the first start: one for each projector', async () => {
    const readModels = await openReadModels(freshFolder());
    const log = await openLog();
    await provide(readModels, log);
    const live = await openLiveGenerations(projections, readModels, log);
    expect(live.map(({ generation }) => numbered(generationName(generation.id)))).toEqual(
      projections.map(({ name, version }) => `${name}_v${version}_1`),
    );
    for (const { projector, generation } of live) {
      expect(await liveOf(readModels, projector)).toBe(generation.id.generation);
      expect(await generation.control()).toEqual({ n: 0, log: await log.identity() });
    }
  });

  it('are not created by looking for them', async () => {
    const readModels = await openReadModels(freshFolder());
    for (const { generation } of await openLiveGenerations(projections, readModels, await openLog())) {
      expect(exists(generation)).toBe(false);
      await expect(generation.control()).rejects.toThrow('has not been built yet');
    }
    expect((await readModels.state()).generations).toEqual([]);
  });

  it('of another version are separate', async () => {
    const folders = await built();
    const readModels = await openReadModels(folders.readModels);
    const log = await openLog(folders.log);
    const before = await liveOf(readModels, tenants);
    const next = { projector: { ...tenants, version: tenants.version + 1 }, readModels, log };
    await provideLive(next);
    expect(await (await openLive(next)).control()).toEqual({ n: 0, log: await log.identity() });
    expect(await liveOf(readModels, tenants)).toBe(before);
  });

  it('can be provided by two processes at once: one of each is kept', async () => {
    for (let round = 0; round < 3; round++) {
      const folders = { log: freshFolder(), readModels: freshFolder() };
      const opened = async () =>
        [await openReadModels(folders.readModels), await openLog(folders.log)] as const;
      const both = [await opened(), await opened()];
      await Promise.all(both.map((dependencies) => provide(...dependencies)));
      const [one, two] = await Promise.all(
        both.map((dependencies) => openLiveGenerations(projections, ...dependencies)),
      );
      expect(one!.map(({ generation }) => generation.id)).toEqual(
        two!.map(({ generation }) => generation.id),
      );
      expect((await both[0]![0].state()).generations).toHaveLength(projections.length);
      await closeAll();
    }
  });

  it('of another log are refused', async () => {
    const folders = await built();
    const other = await openLog();
    await other.record(STREAM, created(), updated('a'));
    const readModels = await openReadModels(folders.readModels);
    await expect(openLiveGenerations(projections, readModels, other)).rejects.toMatchObject({
      code: 'read_models_of_another_log',
      message: expect.stringMatching(/tenants_v\d+_\w+ was built from another event log/),
    });
    await expect(openLiveGenerations(projections, readModels, other)).rejects.toThrow(
      HELP[isClustered ? 'mongodb' : 'sqlite'],
    );
  });

  it('are refused when the log was rolled back: to before their checkpoint, or with another event there or beyond', async () => {
    const changes = [
      'DELETE FROM events WHERE position >= 2',
      'DELETE FROM events',
      `UPDATE events SET id = '${randomUUID()}' WHERE position = 2`,
      `UPDATE events SET position = 3, id = '${randomUUID()}' WHERE position = 2`,
    ];
    const all = [];
    for (const sql of changes) {
      const folders = await built();
      tamper(folders.log, sql);
      all.push(folders);
    }
    // Each is looked at for a while, so all at once.
    const outcomes = await Promise.all(all.map((folders) => open(folders).catch((error: unknown) => error)));
    const refused = { code: 'log_set_back', message: expect.stringMatching(REFUSED) };
    expect(outcomes).toMatchObject(changes.map(() => refused));
  });

  it('are opened once a cluster whose new leader showed an older state shows all of it', async () => {
    const folders = await built();
    const log = await openLog(folders.log);
    let looks = 0;
    const continuity = async (known?: Head) => {
      looks += 1;
      return looks < 3 ? 'set_back' : log.continuity(known);
    };
    const readModels = await openReadModels(folders.readModels);
    const elected = { ...log, continuity };
    expect(await openLiveGenerations(projections, readModels, elected)).toHaveLength(projections.length);
    expect(looks).toBe(2 + projections.length);
  });
});
