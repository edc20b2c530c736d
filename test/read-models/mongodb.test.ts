import type { Db } from 'mongodb';
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Document } from '../../projections/projector';
import { generationName, type GenerationId } from '../../src/read-models/read-models';
import { monotonicMs, pause } from '../../src/async/clock';
import { closeAfterwards } from '../support/closing';
import { countedFailure } from '../support/counted-failure';
import type { Gate } from '../support/gate';
import { describeMongodb, mongodbUrl } from '../support/mongodb/databases';
import { connectMongodb, mongodbBehindProxy, openMongodb, readModelsOn } from '../support/mongodb-under-test';
import { createAndBuild, createAndOpen, storedOf } from '../support/generations';
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
    /** The clock of the server cannot be changed. */
    const earlier = async (ms: number): Promise<void> => {
      const { db, close } = await connectMongodb(mongodbUrl(place));
      const later = { $add: ['$leases.work.until', ms] };
      await db.collection('read_models.registry').updateOne({}, [{ $set: { 'leases.work.until': later } }]);
      await close();
    };
    return { readModels: await open(), reopen: open, openWithin, later: pause, earlier, ...injection };
  }),
);

describeMongodb('read models in MongoDB', () => {
  /** The connection that others use is named first. */
  const closing = (...resources: readonly { close(): Promise<void> }[]): void => {
    for (const { close } of resources) closeAfterwards(close);
  };
  const openIn: typeof openMongodb = async (...parts) => {
    const readModels = await openMongodb(...parts);
    closing(readModels);
    return readModels;
  };
  const openBoth = async () => {
    const place = randomUUID();
    return [await openIn(place), place] as const;
  };
  const connect = async (place: string) => {
    const connection = await connectMongodb(mongodbUrl(place));
    closing(connection);
    return connection;
  };

  it('belong to one log: another one is refused, and nothing is written', async () => {
    const place = randomUUID();
    await (await openIn(place, { log: 'one' })).requestRetry();
    await expect(openIn(place, { log: 'another' })).rejects.toMatchObject({
      code: 'read_models_of_another_log',
      message: expect.stringMatching(/another event log\. Check .*MONGODB_URL/),
    });
    await openIn(place, { log: 'one' });
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
    const generation = await createAndOpen(await openIn(), id('notes'), collections, LOG);
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
    const { reader } = await createAndOpen(await openIn(place), id('notes'), collections, LOG);
    const other = await createAndOpen(await openIn(place), id('notes'), collections, LOG);
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

  it.each([-30_000, 30_000])(
    'tell times by the server, with a clock that is %s ms ahead',
    async (aheadMs) => {
      const [{ leaseMs, ...readModels }, place] = await openBoth();
      const other = await openIn(place);
      for (const name of ['one', 'two']) await readModels.create(id('notes', 1, name), collections, LOG);
      await readModels.makeLive(id('notes', 1, 'one'), undefined);
      const nowMs = Date.now;
      const clock = jest.spyOn(Date, 'now').mockImplementation(() => nowMs() + aheadMs);
      try {
        await readModels.lease(['work'], 'holder one');
        await readModels.makeLive(id('notes', 1, 'two'), 'one');
      } finally {
        clock.mockRestore();
      }
      const { generations, leases } = await other.state();
      expect(leases.has('work')).toBe(true);
      expect(generations.find(({ generation }) => generation === 'one')?.leftMs).toBeLessThan(leaseMs);
    },
  );

  /** A generation with one note, on a server behind a gate. */
  const behindGate = async () => {
    const { url, ...gate } = await mongodbBehindProxy();
    const connection = await connectMongodb(url);
    const readModels = await readModelsOn(connection);
    closing(connection, readModels);
    const generation = await createAndOpen(readModels, id('notes'), collections, LOG);
    await generation.commit(0, at(1), [note(ONE, 'a', { shelf: 'a', place: 1, moment: 'm' })]);
    return { gate, reader: generation.reader };
  };

  it.each<[string, (gate: Gate) => void]>([
    ['freezes', (gate) => gate.freeze()],
    ['receives nothing any more', (gate) => gate.lose('everything')],
    ['cannot send its answers', (gate) => gate.lose('answers')],
  ])('fail every query within a second if the server %s', async (_, happens) => {
    const { gate, reader } = await behindGate();
    const line = { index: 'on_shelf', equal: ['a'] };
    const queries: Readonly<Record<string, () => Promise<unknown>>> = {
      get: () => reader.get(ONE, 'notes', 'a'),
      find: () => reader.find(ONE, 'notes', { index: 'by_shelf', equal: ['a'], limit: 1 }),
      countsBefore: () => reader.countsBefore(ONE, 'notes', line, ['n']),
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
    const readModels = await readModelsOn(connection);
    closing(connection, readModels);
    await createAndBuild(readModels, id('notes'), collections, LOG);
    const admin = connection.db.client.db('admin');
    const hang = (mode: 'alwaysOn' | 'off') =>
      admin.command({ configureFailPoint: 'hangAfterSettingUpIndexBuild', mode });
    await (
      await createAndBuild(readModels, id('notes'), collections, LOG)
    ).commit(0, at(1), [note(ONE, 'a', {})]);
    await hang('alwaysOn');
    // As if the command had timed out: the server goes on with it.
    server.faults.add({ command: 'createIndexes', action: { type: 'timeout' } });
    let isOpen = false;
    const opening = createAndOpen(readModels, id('notes'), collections, LOG).finally(() => (isOpen = true));
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
    const killed = await readModelsOn(connection, {
      onWrite: () => {
        writes += 1;
        if (writes === killedBefore) throw new Error('killed');
      },
    });
    const other = await readModelsOn(connection, { finishAfterMs: 0 });
    closing(connection, killed, other);
    const begun = await createAndOpen(killed, id('notes'), collections, LOG);
    await expect(begun.commit(0, at(1), notes)).rejects.toThrow('killed');
    return { server, db: connection.db, finish: () => createAndOpen(other, id('notes'), collections, LOG) };
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
    const killed = await readModelsOn(connection, { onWrite });
    const other = await readModelsOn(connection, { finishAfterMs: 0 });
    closing(connection, killed, other);
    const [first, second] = [
      await createAndOpen(killed, id('notes'), collections, LOG),
      await createAndOpen(other, id('notes'), collections, LOG),
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

  it('remove a generation with its collections, and what a late projector wrote to another one', async () => {
    const place = randomUUID();
    const readModels = await openIn(place);
    const [kept, late, removed] = [id('notes', 1, 'kept'), id('notes', 1, 'late'), id('notes')];
    for (const one of [kept, late, removed]) await readModels.create(one, collections, LOG);
    const { db } = await connect(place);
    const collectionsOf = async (one: GenerationId) =>
      (await db.listCollections({}, { nameOnly: true }).toArray())
        .map(({ name }) => name)
        .filter((name) => name.startsWith(`${generationName(one)}.`));
    expect(await readModels.remove(late, {})).toBe(true);
    await db.collection(`${generationName(late)}.notes`).insertOne({ n: 1 });
    expect(await readModels.remove(removed, {})).toBe(true);
    for (const one of [late, removed]) expect(await collectionsOf(one)).toEqual([]);
    expect(await collectionsOf(kept)).toHaveLength(collections.length + 2);
  });

  describe('that somebody has damaged', () => {
    const control = (db: Db) => db.collection<{ _id: string }>('read_models.controls');
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
      ['by dropping all control documents', (db) => db.dropCollection('read_models.controls')],
      ['by altering its number', altering({ n: 'many' })],
      ['by altering its applied number', altering({ applied_n: 7 })],
      ['by altering its checkpoint', altering({ to: 3 })],
    ])('%s fail, say so and can be built again', async (_, damage) => {
      const place = randomUUID();
      const readModels = await openIn(place);
      const live = await createAndOpen(readModels, id('notes'), collections, LOG);
      const first = [note(ONE, 'a', { text: 'a' }), put(ONE, 'counts', 'all', { count: 1 })];
      expect(await live.commit(0, at(1), first)).toBe(true);
      expect(await readModels.makeLive(id('notes'), undefined)).toBe(true);
      await damage((await connect(place)).db);
      const isDamage = { code: 'read_models_unavailable', more: { damaged: 'notes_v1_one' } };
      const use = async () => {
        await live.reader.applied();
        await live.control();
        await live.reader.get(ONE, 'notes', 'a');
        await live.reader.get(ONE, 'counts', 'all');
      };
      await expect(use()).rejects.toMatchObject(isDamage);
      const other = await openIn(place);
      for (const models of [readModels, other])
        expect((await storedOf(models, live.id))?.damage).toBeDefined();
      await expect(createAndOpen(other, live.id, collections, LOG)).rejects.toMatchObject(isDamage);
      const build = await createAndBuild(other, id('notes', 1, 'two'), collections, LOG);
      expect(await build.commit(0, at(1), first)).toBe(true);
      const rebuilt = await build.finish();
      expect(await other.makeLive(rebuilt.id, live.id.generation)).toBe(true);
      expect(await rebuilt.reader.get(ONE, 'counts', 'all')).toEqual({ count: 1 });
    });

    it('by deleting the registry are all built again: which were live is not known any more', async () => {
      const place = randomUUID();
      const readModels = await openIn(place);
      const live = await createAndOpen(readModels, id('notes'), collections, LOG);
      expect(await live.commit(0, at(1), [note(ONE, 'a', { text: 'a' })])).toBe(true);
      expect(await readModels.makeLive(id('notes'), undefined)).toBe(true);
      await (await connect(place)).db.dropCollection('read_models.registry');
      await expect(readModels.state()).rejects.toMatchObject({
        code: 'read_models_unavailable',
        message: expect.stringContaining('tenant-ledger projections rebuild'),
      });
      const other = await openIn(place);
      expect((await other.state()).generations).toEqual([]);
      await other.create(id('notes', 1, 'two'), collections, LOG);
      for (const models of [other, readModels])
        expect((await models.state()).generations).toEqual(
          expect.arrayContaining([{ ...live.id, isLive: false, damage: expect.stringMatching(/registry/) }]),
        );
    });

    it.each(['notes', 'counts'])('are noticed even if a commit has created %s again', async (name) => {
      const place = randomUUID();
      const readModels = await openIn(place);
      const live = await createAndOpen(readModels, id('notes'), collections, LOG);
      expect(await live.commit(0, at(1), [put(ONE, name, 'a', { count: 1 })])).toBe(true);
      expect(await readModels.makeLive(id('notes'), undefined)).toBe(true);
      await dropCollection(name)((await connect(place)).db);
      expect(await live.commit(1, at(2), [put(ONE, name, 'b', { count: 1 })])).toBe(true);
      await expect(live.reader.get(ONE, name, 'a')).rejects.toMatchObject({
        more: { damaged: 'notes_v1_one' },
      });
      await expect(live.load([{ tenantId: ONE, collection: name, key: 'a' }])).rejects.toMatchObject({
        more: { damaged: 'notes_v1_one' },
      });
    });
  });
});
