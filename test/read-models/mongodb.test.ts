import type { Db } from 'mongodb';
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Document } from '../../projections/projector';
import { sweepOnce } from '../../src/read-models/mongodb/sweep';
import { generationName, type Generation } from '../../src/read-models/read-models';
import { mongodbReadModels } from '../../src/read-models/mongodb/mongodb-read-models';
import { monotonicMs } from '../../src/clock';
import { countedFailure } from '../support/counted-failure';
import type { Gate } from '../support/gate';
import { describeMongodb, mongodbUrl } from '../support/mongodb/databases';
import { connectMongodb, mongodbBehindProxy, openMongodb } from '../support/mongodb-under-test';
import { refusedWith, until } from '../support/waiting';
import { readModelsContract } from './contract/contract';
import { at, collections, id, LOG, note, ONE, put } from './contract/harness';

const nested = (levels: number): Document => (levels === 0 ? {} : { in: nested(levels - 1) });

describeMongodb('the port of read models', () =>
  readModelsContract('MongoDB', async () => {
    const place = randomUUID();
    const { onWrite, ...injection } = countedFailure();
    const open = () => openMongodb(place, { onWrite });
    const openWithin = (maxCommitBytes: number) => openMongodb(undefined, { onWrite, maxCommitBytes });
    return { readModels: await open(), reopen: open, openWithin, ...injection };
  }),
);

describeMongodb('read models in MongoDB', () => {
  const opened: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const resource of opened.splice(0)) await resource.close();
  });
  const openIn: typeof openMongodb = async (...parts) => {
    const readModels = await openMongodb(...parts);
    opened.push(readModels);
    return readModels;
  };
  const connect = async (place: string) => {
    const connection = await connectMongodb(mongodbUrl(place));
    opened.push(connection);
    return connection;
  };

  it('belong to one log: another one is refused, and nothing is written', async () => {
    const place = randomUUID();
    await openIn(place, { log: 'one' });
    await expect(openIn(place, { log: 'another' })).rejects.toMatchObject({
      code: 'read_models_of_another_log',
      message: expect.stringMatching(/another event log\. Check .*MONGODB_URL/),
    });
    await openIn(place, { log: 'one' });
  });

  it.each([-30_000, 30_000])(
    'count a generation as live as long as requested with a clock that is %s ms ahead',
    async (aheadMs) => {
      const place = randomUUID();
      const readModels = await openIn(place);
      const other = await openIn(place);
      await readModels.point('notes', 1, { live: 1 }, undefined);
      await readModels.point('notes', 1, { live: 2, previous: 1 }, { live: 1 });
      const nowMs = Date.now;
      const clock = jest.spyOn(Date, 'now').mockImplementation(() => nowMs() + aheadMs);
      try {
        const live = () => other.liveLately('notes', 1, 1_000);
        const startedAt = monotonicMs();
        expect(await live()).toEqual([1]);
        await until(async () => (await live()).length === 0);
        expect(monotonicMs() - startedAt).toBeGreaterThanOrEqual(1_000);
      } finally {
        clock.mockRestore();
      }
    },
  );

  it('refuse data written by a newer program', async () => {
    const place = randomUUID();
    await openIn(place);
    const { db } = await connect(place);
    await db.collection('read_models.registry').updateOne({}, { $set: { format: 2 } });
    await expect(openIn(place)).rejects.toMatchObject({
      code: 'configuration_invalid',
      message: expect.stringMatching(/newer version/),
    });
  });

  it.each<[string, Document]>([
    ['names with a meaning to the server', { $set: 1, 'a.b': { $gt: '' }, '': 0 }],
    ['names with a meaning to the driver', { _bsontype: 'ObjectId', a: { _bsontype: 'Long' } }],
    ['names with a meaning in JavaScript', JSON.parse('{"__proto__":{"a":1},"constructor":2}') as Document],
    ['a NUL or a lone surrogate in a name', { 'a\u0000b': 1, '\ud800': { '\u0001': 2 } }],
    ['a lone surrogate in a text', { deep: [['\udc00', { text: 'a\ud800' }]] }],
    ['more levels than BSON allows', nested(300)],
    ['a list that is much larger in BSON', { list: Array.from({ length: 1_500_000 }, () => 1) }],
    ['lists and objects in indexed fields', { shelf: ['a', 'b'], place: { a: [1] }, colour: null }],
    ['unusual texts beside indexed fields', { shelf: 'a\ud800', place: 2, text: '\ud800' }],
  ])('keep a document with %s', async (_, document) => {
    const generation = await (await openIn()).open(id('notes'), collections, LOG);
    const write = note(ONE, 'a', document);
    expect(await generation.commit(0, at(1), [write, note(ONE, 'b', { shelf: 'a', place: 1 })])).toBe(true);
    // Jest takes seconds to compare such long lists.
    const isTheSame = (found: unknown): boolean => isDeepStrictEqual(found, [document]);
    expect(isTheSame(await generation.load([write]))).toBe(true);
    expect(isTheSame(await generation.reader.find(ONE, 'notes', { limit: 1 }))).toBe(true);
    const onShelf = await generation.reader.find(ONE, 'notes', { index: 'by_shelf', equal: ['a'], limit: 9 });
    expect(onShelf).toEqual([{ shelf: 'a', place: 1 }]);
  });

  it('change their token with every commit, even one that does not move the position', async () => {
    const place = randomUUID();
    const { reader } = await (await openIn(place)).open(id('notes'), collections, LOG);
    const other = await (await openIn(place)).open(id('notes'), collections, LOG);
    const token = async () => {
      await reader.applied();
      return reader.appliedToken!();
    };
    const seen = [await token()];
    for (const to of [at(1), undefined]) {
      await other.commit(seen.length - 1, to, [note(ONE, 'a', { of: seen.length })]);
      expect(reader.appliedToken!()).toBe(seen.at(-1));
      seen.push(await token());
      expect(await token()).toBe(seen.at(-1));
    }
    expect(new Set(seen).size).toBe(3);
  });

  it('report the holder of a lease whose renewal they saw, without waiting for another renewal', async () => {
    const place = randomUUID();
    const [holding, watching] = [await openIn(place), await openIn(place)];
    for (const step of ['begun', 'half done']) {
      await holding.lease('work', 'holder one', 2_000, step);
      await watching.pointer('notes', 1);
    }
    expect(await watching.leaseHolder('work')).toBe('holder one');
    // A lease seen only once may be long dead: nobody renews this one.
    expect(await (await openIn(place)).leaseHolder('work')).toBeUndefined();
  });

  it('count a generation as just left, although the clock of the machine that switched is behind', async () => {
    const place = randomUUID();
    const [behind, other] = [await openIn(place), await openIn(place)];
    expect(await behind.point('notes', 1, { live: 1 }, undefined)).toBe(true);
    const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now() - 30_000);
    try {
      expect(await behind.point('notes', 1, { live: 2, previous: 1 }, { live: 1 })).toBe(true);
    } finally {
      clock.mockRestore();
    }
    expect(await other.liveLately('notes', 1, 4_000)).toEqual([1]);
  });

  it('do not take a lease again if its release overtakes a renewal', async () => {
    const LONG = 600_000;
    const server = await mongodbBehindProxy();
    const openHere = async () => {
      const connection = await connectMongodb(server.url);
      const readModels = await mongodbReadModels(connection);
      opened.push(readModels, connection);
      return readModels;
    };
    const [holding, other] = [await openHere(), await openHere()];
    expect(await holding.lease('work', 'holder one', LONG, 'begun')).toBe(true);
    const slow = { command: 'update', collection: /registry$/, action: { type: 'slow', ms: 100 } } as const;
    server.faults.add(slow);
    const renewal = holding.lease('work', 'holder one', LONG, 'half done');
    await holding.release('work', 'holder one');
    await renewal;
    expect(server.faults.affected).toBe(1);
    expect(await other.leaseHolder('work')).toBeUndefined();
    expect(await other.lease('work', 'holder two', LONG)).toBe(true);
    expect(await holding.lease('work', 'holder one', LONG, 'half done')).toBe(false);
  });

  /** A generation with one note, on a server behind a gate. */
  const behindGate = async () => {
    const { url, ...gate } = await mongodbBehindProxy();
    const connection = await connectMongodb(url);
    const readModels = await mongodbReadModels(connection);
    opened.push(readModels, connection);
    const generation = await readModels.open(id('notes'), collections, LOG);
    await generation.commit(0, at(1), [note(ONE, 'a', { shelf: 'a', place: 1, moment: 'm' })]);
    return { gate, reader: generation.reader };
  };

  it.each<[string, (gate: Gate) => void]>([
    ['freezes', (gate) => gate.freeze()],
    ['receives nothing any more', (gate) => gate.lose('everything')],
    ['cannot send its answers', (gate) => gate.lose('answers')],
  ])('fail every query within a second if the server %s', async (_, happens) => {
    const { gate, reader } = await behindGate();
    const part = { line: 'on_shelf', equal: ['a'], last: 1, border: 'moment' };
    const queries: Readonly<Record<string, () => Promise<unknown>>> = {
      get: () => reader.get(ONE, 'notes', 'a'),
      find: () => reader.find(ONE, 'notes', { index: 'by_shelf', equal: ['a'], limit: 1 }),
      countBefore: () => reader.countBefore(ONE, 'notes', part, 'n'),
      applied: () => reader.applied(),
    };
    for (const query of Object.values(queries)) expect(await query()).toBeTruthy();
    happens(gate);
    const outcomes = Object.entries(queries).map(async ([name, query]) => {
      const startedAt = monotonicMs();
      const code = await refusedWith(query());
      // One second, plus an allowance for a busy machine.
      return { name, code, isInTime: monotonicMs() - startedAt < 2_000 };
    });
    expect(await Promise.all(outcomes)).toEqual(
      Object.keys(queries).map((name) => ({ name, code: 'read_models_unavailable', isInTime: true })),
    );
    gate.lose('nothing');
    gate.thaw();
    gate.cut();
    await until(async () => (await refusedWith(reader.get(ONE, 'notes', 'a'))) === 'no refusal');
  });

  it('are opened only when their indexes are ready, not while they are being built', async () => {
    const server = await mongodbBehindProxy();
    const connection = await connectMongodb(server.url);
    const readModels = await mongodbReadModels(connection);
    opened.push(readModels, connection);
    await readModels.build(id('notes'), collections, LOG);
    const admin = connection.db.client.db('admin');
    const hang = (mode: 'alwaysOn' | 'off') =>
      admin.command({ configureFailPoint: 'hangAfterSettingUpIndexBuild', mode });
    await (await readModels.build(id('notes'), collections, LOG)).commit(0, at(1), [note(ONE, 'a', {})]);
    await hang('alwaysOn');
    // As if the command had timed out: the server goes on with it.
    server.faults.add({ command: 'createIndexes', action: { type: 'timeout' } });
    let isOpen = false;
    const opening = readModels.open(id('notes'), collections, LOG).finally(() => (isOpen = true));
    try {
      await until(() => server.roundTrips.count({ command: 'createIndexes' }) >= 2);
      expect(isOpen).toBe(false);
    } finally {
      await hang('off');
    }
    const found = (await opening).reader.find(ONE, 'notes', { index: 'by_shelf', equal: ['a'], limit: 1 });
    expect(await found).toEqual([]);
  });

  /** Starts a commit of these notes and kills its writer before this many of its writes. */
  const begin = async (notes: ReturnType<typeof note>[], killedBefore: number) => {
    const server = await mongodbBehindProxy();
    const connection = await connectMongodb(server.url);
    let writes = 0;
    const killed = await mongodbReadModels(connection, {
      onWrite: () => {
        writes += 1;
        if (writes === killedBefore) throw new Error('killed');
      },
    });
    const other = await mongodbReadModels(connection, { finishAfterMs: 0 });
    opened.push(killed, other, connection);
    const begun = await killed.open(id('notes'), collections, LOG);
    await expect(begun.commit(0, at(1), notes)).rejects.toThrow('killed');
    return { server, db: connection.db, finish: () => other.open(id('notes'), collections, LOG) };
  };

  it('do not take a duplicate for written if the same answer says that no majority has the writes', async () => {
    const notes = ['a', 'b'].map((key) => note(ONE, key, { shelf: key }));
    const { server, db, finish } = await begin(notes, 2);
    const there = { _id: `${ONE} a`, n: 1, t: ONE, doc: { shelf: 'a' } };
    const [{ name } = { name: '' }] = await db.listCollections({ name: /\.notes$/ }).toArray();
    server.faults.add({
      command: 'update',
      collection: /notes$/,
      first: () => db.collection<typeof there>(name).insertOne(there),
      action: { type: 'writeConcernError', code: 64 },
    });
    const control = async () => (await finish()).control();
    await expect(control()).rejects.toMatchObject({ code: 'read_models_unavailable' });
    expect(server.faults.affected).toBe(1);
    expect(await control()).toMatchObject({ n: 1, applied: at(1).position });
    expect(await (await finish()).load(notes)).toEqual([{ shelf: 'a' }, { shelf: 'b' }]);
  });

  it('complete a commit that another process is completing at the same time', async () => {
    const notes = ['a', 'b', 'c'].map((key) => note(ONE, key, { shelf: key }));
    const { finish } = await begin(notes, 2);
    const finished = await Promise.all([finish(), finish(), finish()]);
    for (const generation of finished) {
      expect(await generation.control()).toMatchObject({ n: 1, applied: at(1).position });
      expect(await generation.load(notes)).toEqual(notes.map(({ document }) => document));
    }
  });

  it('complete a commit before the next one, even if the next one is made without looking', async () => {
    const connection = await connectMongodb();
    let writes = 0;
    const onWrite = (): void => {
      writes += 1;
      if (writes === 2) throw new Error('killed');
    };
    const killed = await mongodbReadModels(connection, { onWrite });
    const other = await mongodbReadModels(connection, { finishAfterMs: 0 });
    opened.push(killed, other, connection);
    const [first, second] = [
      await killed.open(id('notes'), collections, LOG),
      await other.open(id('notes'), collections, LOG),
    ];
    const [one, two] = [note(ONE, 'a', { of: 1 }), note(ONE, 'b', { of: 2 })];
    await expect(first.commit(0, at(1), [one])).rejects.toThrow('killed');
    expect(await second.commit(1, at(2), [two])).toBe(true);
    expect(await second.load([one, two])).toEqual([{ of: 1 }, { of: 2 }]);
    expect(await second.control()).toMatchObject({ n: 2, applied: at(2).position });
  });

  it('write a large commit in parts, and complete it with the missing ones', async () => {
    const notes = Array.from({ length: 2_500 }, (_, i) => note(ONE, `${i}`, { shelf: `${i}` }));
    const { server, finish } = await begin(notes, 4);
    const written: number[] = [];
    server.faults.add({
      command: 'update',
      collection: /notes$/,
      when: ({ updates }) => written.push((updates as unknown[]).length) < 0,
      action: { type: 'slow', ms: 0 },
    });
    const finished = await finish();
    expect(await finished.control()).toMatchObject({ n: 1, applied: at(1).position });
    expect(await finished.load(notes)).toEqual(notes.map(({ document }) => document));
    expect(written).toEqual([500]);
  });

  it('sweep collections of no generation, once nobody reads them any more', async () => {
    const place = randomUUID();
    const readModels = await openIn(place);
    const kept = await readModels.open(id('notes', 1, 2), collections, LOG);
    const dropped = await readModels.open(id('notes'), collections, LOG);
    for (const generation of [kept, dropped]) await generation.commit(0, at(1), [note(ONE, 'a', { of: 1 })]);
    const connection = await connect(place);
    const namesOf = async (generation: Generation) =>
      (await connection.db.listCollections({}, { nameOnly: true }).toArray())
        .map(({ name }) => name)
        .filter((name) => name.startsWith(`${generationName(generation.id)}.`));
    await readModels.drop(dropped.id);
    const seen = new Map<string, number>();
    await sweepOnce(connection, seen, 60_000);
    expect(await namesOf(dropped)).not.toEqual([]);
    expect(await dropped.reader.get(ONE, 'notes', 'a')).toEqual({ of: 1 });
    await sweepOnce(connection, seen, 0);
    expect(await namesOf(dropped)).toEqual([]);
    expect(await namesOf(kept)).not.toEqual([]);
    expect(await kept.reader.get(ONE, 'notes', 'a')).toEqual({ of: 1 });
    await expect(dropped.commit(1, at(2), [])).rejects.toMatchObject({ code: 'generation_removed' });
    expect(await readModels.generations()).toEqual([kept.id]);
  });

  describe('that somebody has damaged', () => {
    const control = (db: Db) => db.collection<{ _id: string }>('read_models.generations');
    const dropCollection = (ending: string) => async (db: Db) => {
      const all = await db.listCollections({}, { nameOnly: true }).toArray();
      const { name } = all.find((each) => each.name.endsWith(`.${ending}`)) ?? { name: '' };
      expect(await db.dropCollection(name)).toBe(true);
    };
    const altering = (change: object) => async (db: Db) =>
      void (await control(db).updateOne({}, { $set: change }));

    it.each<[string, (db: Db) => Promise<unknown>]>([
      ['by dropping a collection with indexes', dropCollection('notes')],
      ['by dropping a collection without any', dropCollection('counts')],
      ['by deleting its control document', (db) => control(db).deleteOne({})],
      ['by dropping all control documents', (db) => db.dropCollection('read_models.generations')],
      ['by altering its number', altering({ n: 'many' })],
      ['by altering its applied number', altering({ applied_n: 7 })],
      ['by altering its checkpoint', altering({ to: 3 })],
    ])('%s fail, say so and can be built again', async (_, damage) => {
      const place = randomUUID();
      const readModels = await openIn(place);
      const live = await readModels.open(id('notes'), collections, LOG);
      const first = [note(ONE, 'a', { text: 'a' }), put(ONE, 'counts', 'all', { count: 1 })];
      expect(await live.commit(0, at(1), first)).toBe(true);
      await readModels.point('notes', 1, { live: 1 }, undefined);
      await damage((await connect(place)).db);
      const isDamage = { code: 'read_models_unavailable', more: { damaged: 'notes_v1_1' } };
      const use = async () => {
        await live.reader.applied();
        await live.control();
        await live.reader.get(ONE, 'notes', 'a');
        await live.reader.get(ONE, 'counts', 'all');
      };
      await expect(use()).rejects.toMatchObject(isDamage);
      expect(await readModels.damageOf(live.id)).toBeDefined();
      const other = await openIn(place);
      expect(await other.damageOf(live.id)).toBeDefined();
      await expect(other.open(live.id, collections, LOG)).rejects.toMatchObject(isDamage);
      const build = await other.build(id('notes', 1, 2), collections, LOG);
      expect(await build.commit(0, at(1), first)).toBe(true);
      const rebuilt = await build.finish();
      expect(await other.point('notes', 1, { live: 2 }, { live: 1 })).toBe(true);
      expect(await rebuilt.reader.get(ONE, 'counts', 'all')).toEqual({ count: 1 });
    });

    it('by deleting the registry are all built again: which were live is not known any more', async () => {
      const place = randomUUID();
      const readModels = await openIn(place);
      const live = await readModels.open(id('notes'), collections, LOG);
      expect(await live.commit(0, at(1), [note(ONE, 'a', { text: 'a' })])).toBe(true);
      await readModels.point('notes', 1, { live: 1 }, undefined);
      await (await connect(place)).db.dropCollection('read_models.registry');
      await expect(readModels.pointer('notes', 1)).rejects.toMatchObject({
        code: 'read_models_unavailable',
        message: expect.stringContaining('tenant-ledger projections rebuild --all'),
      });
      const other = await openIn(place);
      for (const models of [other, readModels]) {
        expect(await models.pointer('notes', 1)).toBeUndefined();
        expect(await models.damageOf(live.id)).toMatch(/registry of the read models was lost/);
      }
    });

    it.each(['notes', 'counts'])('are noticed even if a commit has created %s again', async (name) => {
      const place = randomUUID();
      const readModels = await openIn(place);
      const live = await readModels.open(id('notes'), collections, LOG);
      expect(await live.commit(0, at(1), [put(ONE, name, 'a', { count: 1 })])).toBe(true);
      await readModels.point('notes', 1, { live: 1 }, undefined);
      await dropCollection(name)((await connect(place)).db);
      expect(await live.commit(1, at(2), [put(ONE, name, 'b', { count: 1 })])).toBe(true);
      await expect(live.reader.get(ONE, name, 'a')).rejects.toMatchObject({
        more: { damaged: 'notes_v1_1' },
      });
      await expect(live.load([{ tenantId: ONE, collection: name, key: 'a' }])).rejects.toMatchObject({
        more: { damaged: 'notes_v1_1' },
      });
    });
  });
});
