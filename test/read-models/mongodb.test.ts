import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Document } from '../../projections/projector';
import { sweepOnce } from '../../src/read-models/mongodb/sweep';
import { generationName, type Generation } from '../../src/read-models/read-models';
import { mongodbReadModels } from '../../src/read-models/mongodb/mongodb-read-models';
import { countedFailure } from '../support/counted-failure';
import { connectMongodb, mongodbUrl, openMongodb } from '../support/mongodb-under-test';
import { startMongoServer } from '../support/mongodb/server';
import { until } from '../support/waiting';
import { readModelsContract } from './contract/contract';
import { at, collections, id, LOG, note, ONE } from './contract/harness';

const nested = (levels: number): Document => (levels === 0 ? {} : { in: nested(levels - 1) });

readModelsContract('MongoDB', async () => {
  const place = randomUUID();
  const { onWrite, ...injection } = countedFailure();
  const open = () => openMongodb(place, { onWrite });
  const openWithin = (maxCommitBytes: number) => openMongodb(undefined, { onWrite, maxCommitBytes });
  return { readModels: await open(), reopen: open, openWithin, ...injection };
});

describe('read models in MongoDB', () => {
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
    const connection = await connectMongodb(await mongodbUrl(place));
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

  it('do not complete a commit that no majority has, since it may be rolled back', async () => {
    const server = await startMongoServer();
    opened.push(server);
    const openAt = async (options: string) => {
      const connection = await connectMongodb(`${server.url}${options}`);
      opened.unshift(connection);
      const readModels = await mongodbReadModels(connection, { finishAfterMs: 0 });
      opened.unshift(readModels);
      return readModels.open(id('notes'), collections, LOG);
    };
    const [withoutRetries, other] = [await openAt('?retryWrites=false'), await openAt('')];
    const write = (by: string) => [note(ONE, 'a', { by })];
    server.replication.hold();
    const undone = withoutRetries.commit(0, at(1), write('one')).catch((error: unknown) => error);
    await until(() => server.store.unconfirmed > 0);
    expect(await other.control()).toMatchObject({ n: 0 });
    expect(server.roundTrips.count({ command: 'update', collection: /notes$/ })).toBe(0);
    server.rollBack();
    server.replication.release();
    expect(await undone).toMatchObject({ code: 'read_models_unavailable' });
    expect(await other.commit(0, at(2), write('other'))).toBe(true);
    expect(await other.load(write('other'))).toEqual([{ by: 'other' }]);
  });

  /** Starts a commit of these notes and kills its writer before this many of its writes. */
  const begin = async (notes: ReturnType<typeof note>[], killedBefore: number) => {
    const server = await startMongoServer();
    const connection = await connectMongodb(server.url);
    let writes = 0;
    const killed = await mongodbReadModels(connection, {
      onWrite: () => {
        writes += 1;
        if (writes === killedBefore) throw new Error('killed');
      },
    });
    const other = await mongodbReadModels(connection, { finishAfterMs: 0 });
    opened.push(killed, other, connection, server);
    const begun = await killed.open(id('notes'), collections, LOG);
    await expect(begun.commit(0, at(1), notes)).rejects.toThrow('killed');
    return { server, finish: () => other.open(id('notes'), collections, LOG) };
  };

  it('complete a commit that another process is completing, even if the server stops at a duplicate', async () => {
    const notes = ['a', 'b', 'c'].map((key) => note(ONE, key, { shelf: key }));
    const { server, finish } = await begin(notes, 2);
    const there = { _id: `${ONE} a`, n: 1, t: ONE, doc: { shelf: 'a' } };
    const name = server.store.namespaces().find((namespace) => namespace.endsWith('.notes'))!;
    server.faults.add({
      command: 'update',
      collection: /notes$/,
      when: () => {
        if (server.store.collection(name)!.size === 0) server.store.insert(name, there);
        return true;
      },
      times: Infinity,
      action: { type: 'ordered' },
    });
    const finished = await finish();
    expect(await finished.control()).toMatchObject({ n: 1, applied: at(1).position });
    expect(await finished.load(notes)).toEqual(notes.map(({ document }) => document));
    expect(server.roundTrips.count({ command: 'update', collection: /notes$/ })).toBe(2);
  });

  it('write a large commit in parts, and complete it with the missing ones', async () => {
    const notes = Array.from({ length: 2_500 }, (_, i) => note(ONE, `${i}`, { shelf: `${i}` }));
    const { server, finish } = await begin(notes, 4);
    const written: number[] = [];
    server.faults.add({
      command: 'update',
      collection: /notes$/,
      when: ({ updates }) => written.push((updates as unknown[]).length) < 0,
      action: { type: 'ordered' },
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
});
