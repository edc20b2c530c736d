import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { projections } from '../../projections/projections';
import { findTenant } from '../../projections/tenants';
import { projectingLease } from '../../src/projecting/lease';
import { progress } from '../../src/projecting/progress';
import { damaged, unreadable } from '../../src/read-models/damage';
import { generationName, type Generation, type ReadModels } from '../../src/read-models/read-models';
import { freshFolder } from '../support/folders';
import { deferred } from '../support/waiting';
import { until } from '../support/waiting';
import { lineCollections, linesProjector, plainLines, type Happened } from './lines';
import {
  created,
  documentsOf,
  openLog,
  openProcess,
  openReadModels,
  streams,
  takenByNobody,
  turn,
  updated,
} from './harness';

const TENANT = randomUUID();
const STREAM = streams.tenant(TENANT);
const LONG = 10_000;

const prepared = async () => {
  const log = await openLog();
  const folder = join(log.folder, 'read-models');
  const openServer = async () => openProcess(log, await openReadModels(folder), projections);
  const nameIn = async (server: Awaited<ReturnType<typeof openServer>>) =>
    (await findTenant(server.reader('tenants'), TENANT))?.name;
  return { log, folder, openServer, nameIn };
};

describe('a projecting process', () => {
  it('projects existing and new events', async () => {
    const { log, openServer, nameIn } = await prepared();
    const { position: first } = await log.record(STREAM, created('first'));
    const server = await openServer();
    await server.start();
    expect(await server.reached(first, LONG)).toBe(true);
    expect(await nameIn(server)).toBe('first');
    for (const name of ['second', 'third']) {
      const { position } = await log.record(STREAM, updated(name));
      expect(await server.reached(position, LONG)).toBe(true);
      expect(await nameIn(server)).toBe(name);
    }
    expect(server.warnings).toEqual([]);
  });

  it('reports that a position was not reached in time', async () => {
    const { log, openServer } = await prepared();
    const { position: first } = await log.record(STREAM, created());
    expect(await (await openServer()).catchUp(first, LONG)).toBe(true);
    const { position } = await log.record(STREAM, updated('a'));
    const server = await openServer();
    expect(await server.reached(position, 0)).toBe(false);
    expect(await server.reached(position, 30)).toBe(false);
    await server.start();
    expect(await server.reached(position, LONG)).toBe(true);
    expect(await server.reached('9999999999999999', 30)).toBe(false);
  });

  it('refuses an unknown projection', async () => {
    const { openServer } = await prepared();
    const server = await openServer();
    expect(() => server.reader('nothing')).toThrow(
      expect.objectContaining({ code: 'read_models_unavailable' }),
    );
  });

  it('holds the lease alone: another process waits, and takes over when it stops', async () => {
    const { log, openServer, nameIn } = await prepared();
    const { position: first } = await log.record(STREAM, created('first'));
    const [server, other] = [await openServer(), await openServer()];
    expect(await server.holder()).toBeUndefined();
    await server.start();
    // It starts projecting only after it has tried to take every lease.
    expect(await server.reached(first, LONG)).toBe(true);
    const holder = await other.holder();
    await other.start();
    const { position } = await log.record(STREAM, updated('second'));
    expect(await other.reached(position, LONG)).toBe(true);
    expect(await nameIn(other)).toBe('second');
    expect(await other.holder()).toBe(holder);

    await server.stop();
    await until(async () => ![holder, undefined].includes(await other.holder()));
    const { position: later } = await log.record(STREAM, updated('third'));
    expect(await other.reached(later, LONG)).toBe(true);
    expect(await nameIn(other)).toBe('third');
    expect([...server.warnings, ...other.warnings]).toEqual([]);
  });

  it('takes over from a process that was ahead of its consumer', async () => {
    const { log, folder, openServer, nameIn } = await prepared();
    await log.record(STREAM, created('first'));
    const other = await openServer();
    const elsewhere = await openLog(log.folder);
    const server = await openProcess(elsewhere, await openReadModels(folder), projections);
    await server.start();
    await until(async () => (await server.holder()) !== undefined);
    await other.start();
    for (let round = 0; round < 5; round++) {
      const { position } = await elsewhere.record(STREAM, updated(`round ${round}`));
      expect(await server.reached(position, LONG)).toBe(true);
    }
    await server.stop();
    const { position } = await elsewhere.record(STREAM, updated('last'));
    expect(await other.reached(position, LONG)).toBe(true);
    expect(await nameIn(other)).toBe('last');
  });

  it('continues after failed commits, and reports them', async () => {
    const log = await openLog();
    let failures = 0;
    const onWrite = () => {
      if (failures > 0) {
        failures -= 1;
        throw new Error('the disk is full');
      }
    };
    const readModels = await openReadModels(freshFolder(), { onWrite });
    const lines = linesProjector();
    const server = await openProcess(log, readModels, [lines]);
    await server.start();
    const history: Happened[] = [];
    for (const name of ['a', 'b']) {
      failures = 1;
      const recorded = history.length === 0 ? created(name) : updated(name);
      const { position } = await log.record(STREAM, recorded);
      history.push({ tenantId: TENANT, type: recorded.type, position, bad: false });
      expect(await server.reached(position, LONG)).toBe(true);
    }
    expect(server.warnings).toHaveLength(2);
    expect(server.warnings[0]).toMatch(/Projecting lines_v1_\w+ failed; retrying.*the disk is full/);
    expect(await documentsOf(server.reader('lines'), lineCollections)).toEqual(plainLines(history));
  });

  it('projects what is whole beside what is damaged', async () => {
    const { log, folder, nameIn } = await prepared();
    const readModels = await openReadModels(folder);
    const open: ReadModels['open'] = async (id, collections) => {
      const generation = await readModels.open(id, collections);
      return id.projection === 'logs' ? unreadable(id, damaged(id, 'gone.')) : generation;
    };
    const server = await openProcess(log, { ...readModels, open }, projections);
    await server.start();
    await log.record(STREAM, created('shown all the same'));
    await until(async () => (await nameIn(server)) === 'shown all the same', LONG);
  });

  it('can be stopped while it waits', async () => {
    const { openServer } = await prepared();
    const [server, other] = [await openServer(), await openServer()];
    await server.start();
    await until(async () => (await server.holder()) !== undefined);
    await other.start();
    await turn();
    await other.stop();
    await server.stop();
    expect(await server.holder()).toBeUndefined();
  });
});

describe('catching up', () => {
  it('projects up to the position if nobody else does, and releases the lease', async () => {
    const { log, openServer, nameIn } = await prepared();
    await log.record(STREAM, created('first'));
    const { position } = await log.record(STREAM, updated('second'));
    const server = await openServer();
    const recorded: string[] = [];
    expect(await server.catchUp(position, LONG, (done) => recorded.push(done))).toBe(true);
    expect(recorded).toEqual(projections.map(() => position));
    expect(await nameIn(server)).toBe('second');
    expect(await server.holder()).toBeUndefined();
    expect(await server.catchUp(position, 0, (done) => recorded.push(done))).toBe(true);
    expect(recorded).toHaveLength(projections.length);
  });

  it('waits for the process that projects', async () => {
    const { log, openServer, nameIn } = await prepared();
    const [server, command] = [await openServer(), await openServer()];
    await server.start();
    await until(async () => (await server.holder()) !== undefined);
    const { position } = await log.record(STREAM, created('first'));
    const recorded: string[] = [];
    expect(await command.catchUp(position, LONG, (done) => recorded.push(done))).toBe(true);
    expect(recorded).toEqual([]);
    expect(await nameIn(command)).toBe('first');
  });

  it('keeps its leases, even if it takes much longer than they last', async () => {
    const log = await openLog();
    const { position } = await log.record(STREAM, created('first'));
    const folder = join(log.folder, 'read-models');
    const readModels = await openReadModels(folder);
    const [started, proceed] = [deferred(), deferred()];
    const SHORT_MS = 600;
    const slow: ReadModels = {
      ...readModels,
      leaseMs: SHORT_MS,
      open: async (...dependencies) => {
        const generation = await readModels.open(...dependencies);
        const commit: Generation['commit'] = async (...writes) => {
          started.resolve();
          await proceed.promise;
          return generation.commit(...writes);
        };
        return { ...generation, commit };
      },
    };
    const lines = linesProjector();
    const server = await openProcess(log, slow, [lines]);
    const catchingUp = server.catchUp(position, 0);
    await started.promise;
    const other = await openReadModels(folder);
    await takenByNobody(other, projectingLease(lines.name, lines.version), 3 * SHORT_MS).finally(
      proceed.resolve,
    );
    expect(await catchingUp).toBe(true);
    expect(await server.holder()).toBeUndefined();
  });

  it('gives up in time if the projecting process does not get there', async () => {
    const { log, folder, openServer } = await prepared();
    const { position } = await log.record(STREAM, created('first'));
    const lazy = await openReadModels(folder);
    await lazy.lease(
      projections.map(({ name, version }) => projectingLease(name, version)),
      'somebody',
    );
    const server = await openServer();
    expect(await server.catchUp(position, 30)).toBe(false);
    expect(await server.holder()).toBe('somebody');
  });

  it('projects what only this program knows beside another program, and everything once that one ends', async () => {
    const log = await openLog();
    const folder = join(log.folder, 'read-models');
    const lines = linesProjector();
    const other = { ...linesProjector(), name: 'others' };
    const old = await openProcess(log, await openReadModels(folder), [lines, other]);
    await old.start();
    await until(async () => (await old.holder()) !== undefined);
    const oldHolder = await old.holder();
    const newer = await openProcess(
      log,
      await openReadModels(folder),
      [{ ...lines, version: 2 }, other],
      '2',
    );
    await newer.start();
    const { position } = await log.record(STREAM, created('first'));
    expect(await newer.reached(position, LONG)).toBe(true);
    expect(await old.reached(position, LONG)).toBe(true);
    expect((await newer.holder())?.split(', ')).toContain(oldHolder);
    expect(await old.holder()).toBe(oldHolder);
    await old.stop();
    await until(async () => (await newer.holder())?.includes(oldHolder ?? '') === false);
    const later = await log.record(STREAM, updated('later'));
    expect(await newer.reached(later.position, LONG)).toBe(true);
  });

  it('continues after the read models were unreachable for a moment, at any step', async () => {
    const log = await openLog();
    const readModels = await openReadModels(join(log.folder, 'read-models'));
    let failures = 10;
    let isOpen = false;
    const flaky = {
      ...readModels,
      state: async () => {
        if (isOpen && failures-- > 0) throw new Error('away');
        return readModels.state();
      },
    };
    const server = await openProcess(log, flaky, [linesProjector()]);
    await server.start();
    isOpen = true;
    const { position } = await log.record(STREAM, created('first'));
    await until(() => failures <= 0);
    expect(await server.reached(position, LONG)).toBe(true);
    expect(server.warnings).toContain('The registry of the read models cannot be followed. away');
  });
});

describe('waiting for progress', () => {
  const nothing = async (): Promise<void> => undefined;
  const generationAt = (position: () => string | undefined, generation = 1): Generation =>
    ({
      id: { projection: 'lines', version: 1, generation },
      reader: { applied: async () => position() },
    }) as unknown as Generation;

  it('covers all generations', async () => {
    const at = ['3', '1'];
    const generations = at.map((_, i) => generationAt(() => at[i], i));
    const steps = progress({ shown: () => generations, refresh: nothing });
    let done: boolean | undefined;
    const waiting = steps.reached('3', LONG).then((reached) => (done = reached));
    at[1] = '2';
    steps.moved(generationName((generations[1] as Generation).id), '2', false);
    await turn();
    expect(done).toBeUndefined();
    at[1] = '3';
    steps.moved(generationName((generations[1] as Generation).id), '3', false);
    expect(await waiting).toBe(true);
  });

  it('notices what another process has projected', async () => {
    let at: string | undefined;
    const generations = [generationAt(() => at)];
    const waiting = progress({ shown: () => generations, refresh: nothing }).reached('2', LONG);
    await turn();
    at = '2';
    expect(await waiting).toBe(true);
  });

  it('ends at once if there is nothing to wait for', async () => {
    for (const generations of [[generationAt(() => '5')], []])
      expect(await progress({ shown: () => generations, refresh: nothing }).reached('4', 0)).toBe(true);
  });

  it('reads the store and the pointers once for all waiters', async () => {
    let [asked, looks] = [0, 0];
    const generations = [generationAt(() => `${(asked += 1)}` && undefined)];
    const refresh = async (): Promise<void> => void (looks += 1);
    const steps = progress({ shown: () => generations, refresh });
    steps.moved('lines_v1_1', '1', false);
    const waiting = Array.from({ length: 100 }, () => steps.reached('2', LONG));
    steps.moved('lines_v1_1', '2', false);
    expect(new Set(await Promise.all(waiting))).toEqual(new Set([true]));
    expect([asked, looks]).toEqual([0, 1]);
  });

  it('does not read the store for generations that report their progress themselves', async () => {
    let clock = 1_000;
    const now = jest.spyOn(performance, 'now').mockImplementation(() => clock);
    try {
      const asked: number[] = [];
      const generations = [1, 2].map((number) =>
        generationAt(() => `${asked.push(number)}` && undefined, number),
      );
      const steps = progress({ shown: () => generations, refresh: nothing });
      steps.moved('lines_v1_1', '1', false);
      const waiting = steps.reached('2', LONG);
      await turn();
      for (const isHeard of [true, false]) {
        clock += 100;
        const before = asked.length;
        steps.moved(isHeard ? 'lines_v1_1' : 'lines_v1_2', '1', false);
        await until(() => asked.length > before);
      }
      expect(asked).toEqual([2, 2, 1]);
      for (const { id } of generations) steps.moved(generationName(id), '2', false);
      expect(await waiting).toBe(true);
    } finally {
      now.mockRestore();
    }
  });

  it('serves a waiter that arrives just as the last one before it was served', async () => {
    const generations = [generationAt(() => '1')];
    const steps = progress({ shown: () => generations, refresh: nothing });
    for (let ticks = 0; ticks < 8; ticks += 1) {
      await steps.reached('1', LONG);
      for (let tick = 0; tick < ticks; tick += 1) await Promise.resolve();
      expect(await steps.reached('1', 1_000)).toBe(true);
    }
  });

  it('includes a generation that was switched to in the meantime', async () => {
    let generations = [generationAt(() => undefined, 1)];
    const refresh = async (): Promise<void> => void (generations = [generationAt(() => undefined, 2)]);
    const steps = progress({ shown: () => generations, refresh });
    const waiting = steps.reached('2', LONG);
    steps.moved('lines_v1_1', '2', false);
    expect(await Promise.race([waiting, turn()])).toBeUndefined();
    steps.moved('lines_v1_2', '2', false);
    expect(await waiting).toBe(true);
  });

  it('rules out that a tenant is parked only if it was told so, up to that position', () => {
    const [first, other] = [generationAt(() => '1', 1), generationAt(() => '1', 2)];
    const { moved, mayPark } = progress({ shown: () => [first, other], refresh: nothing });
    expect(mayPark(first, '1')).toBe(true);
    moved('lines_v1_1', '2', false);
    expect(['1', '2', '3'].map((position) => mayPark(first, position))).toEqual([false, false, true]);
    expect(mayPark(other, '1')).toBe(true);
    moved('lines_v1_1', '3', true);
    expect(mayPark(first, '1')).toBe(true);
    moved('lines_v1_1', '4', false);
    expect(mayPark(first, '4')).toBe(false);
  });

  it('times out whatever the store does, and fails when the store fails', async () => {
    const withReader = (applied: () => Promise<never>): Generation =>
      ({ ...generationAt(() => '2'), reader: { applied } }) as unknown as Generation;
    const silent = withReader(() => new Promise<never>(() => undefined));
    expect(await progress({ shown: () => [silent], refresh: nothing }).reached('2', 20)).toBe(false);
    const failing = withReader(() => Promise.reject(new Error('away')));
    const steps = progress({ shown: () => [failing], refresh: nothing });
    await expect(steps.reached('2', LONG)).rejects.toThrow('away');
    await expect(steps.reached('2', LONG)).rejects.toThrow('away');
  });
});
