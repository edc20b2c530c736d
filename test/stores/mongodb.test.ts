import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Document } from '../../projections/projector';
import { monotonicMs } from '../../src/async/clock';
import { mongoConnection, type MongoConnection } from '../../src/mongodb/connection';
import { awaitSwitch } from '../../src/read-models/mongodb/gates';
import { mongodbReadModels } from '../../src/read-models/mongodb/mongodb-read-models';
import type { ReadModelSet } from '../../src/read-models/read-models';
import { closeAfterwards } from '../support/closing';
import { freePort } from '../support/free-port';
import { connectMongodb, mongodbBehindProxy } from '../support/mongodb-under-test';
import { describeMongodb, mongodbUrl } from '../support/mongodb/databases';
import { findMongod } from '../support/mongodb/mongod';
import { firstSet, openAt } from '../support/mongodb/sets';
import { refusedWith, until } from '../support/waiting';
import { describeReadModels } from '../read-models/contract/read-models';
import {
  advanceBy,
  at,
  beforeIn,
  COLLECTIONS,
  commitOf,
  LOG,
  note,
  ONE,
  TWO,
} from '../read-models/contract/storage';
import { add, countIn } from '../read-models/counts';

/** Single tests share one database, since making one takes longer than most of them. */
describeMongodb('the port of read-model sets', () => {
  let common: Promise<MongoConnection> | undefined;
  describeReadModels('MongoDB', async (isShared) => {
    const connection = await (isShared ? connectMongodb() : (common ??= connectMongodb()));
    const discard = async (): Promise<void> => {
      const names = await connection.db.listCollections({}, { nameOnly: true }).toArray();
      await Promise.all(names.map(({ name }) => connection.db.dropCollection(name)));
    };
    return { open: (options) => mongodbReadModels(connection, options), discard };
  });
});

describeMongodb('read models in MongoDB', () => {
  const nested = (levels: number): Document => (levels === 0 ? {} : { in: nested(levels - 1) });

  it.each<[string, Document]>([
    ['names with a meaning to the server', { $set: 1, 'a.b': { $gt: '' }, '': 0 }],
    ['names with a meaning to the driver', { _bsontype: 'ObjectId', a: { $ref: 'x', $id: 1 } }],
    ['names with a meaning in JavaScript', JSON.parse('{"__proto__":{"a":1},"constructor":2}') as Document],
    ['a NUL in a name and in texts', { 'a\0b': 1, text: 'a\0b', shelf: 'x\0' }],
    ['a NUL in texts', { text: 'a\0b', shelf: 'x\0y', list: ['\0'] }],
    ['more levels than BSON allows', nested(300)],
    ['a list that is much larger in BSON', { list: Array.from({ length: 1_500_000 }, () => 1) }],
    ['lists and objects in indexed fields', { shelf: ['a', 'b'], place: { a: [1] }, colour: null }],
    ['numbers of all kinds', { n: 1.5, small: -1, large: 2 ** 53 - 1, tiny: 5e-324 }],
  ])('keep a document with %s', async (_, document) => {
    const set = await (await openAt(mongodbUrl('documents'))).create(LOG);
    await set.finish();
    await advanceBy(set, 1, note(ONE, 'a\0', document), note(ONE, 'b', { shelf: 'a', place: 1 }));
    // Jest takes seconds to compare such long lists.
    const isTheSame = (found: unknown): boolean => isDeepStrictEqual(found, document);
    expect(isTheSame(await set.get(ONE, 'notes', 'a\0'))).toBe(true);
    expect(isTheSame((await set.load([note(ONE, 'a\0', {})]))[0])).toBe(true);
    expect(isTheSame((await set.find(ONE, 'notes', { limit: 1 }))[0])).toBe(true);
    const [scanned] = await set.scan('notes', 1);
    expect(isTheSame(JSON.parse(scanned!.text))).toBe(true);
    expect(scanned!.key).toBe('a\0');
    const onShelf = await set.find(ONE, 'notes', { index: 'by_shelf', equal: ['a'], limit: 9 });
    expect(onShelf).toEqual([{ shelf: 'a', place: 1 }]);
  });

  it('commit each batch exactly once, however many processes try', async () => {
    const url = mongodbUrl();
    const first = await openAt(url);
    await firstSet(first);
    const all = [first, await openAt(url), await openAt(url)];
    const outcomes = await Promise.all(
      all.map(async (readModels) => {
        const { set } = (await readModels.live())!;
        const found = [];
        for (let i = 0; i < 40; i += 1) found.push((await add(set))[0]);
        return found;
      }),
    );
    const done = outcomes.flat().filter((outcome) => outcome === 'done').length;
    const { set } = (await first.live())!;
    expect(new Set(outcomes.flat())).toEqual(new Set(['done', 'overtaken']));
    expect({ progress: await set.progress([ONE]), count: await countIn(set) }).toMatchObject({
      progress: [{ tenant: done }],
      count: done,
    });
    expect(await set.scan('notes', 1_000)).toHaveLength(done);
  });

  it('have no successor if its builder was taken for dead', async () => {
    const url = mongodbUrl();
    const readModels = await openAt(url);
    const former = await firstSet(readModels);
    const successor = await readModels.create(LOG);
    const { db, close } = await connectMongodb(url);
    closeAfterwards(close);
    const follow = async (): Promise<void> => {
      const gates = db.collection(`progress_${former.id}`);
      await gates.updateOne({ closed_at: { $exists: true } }, { $set: { closed_at: new Date(0) } });
      expect(await add(former)).toEqual(['done']);
    };
    expect(await readModels.succeed(successor, former, { follow })).toBe(false);
    expect(await add(former)).toEqual(['done']);
    const next = await readModels.create(LOG);
    await advanceBy(next, 2);
    expect(await readModels.succeed(next, former)).toBe(true);
    expect(await add(former)).toBe('superseded');
  });

  it('stay closed once they have a successor, even for whoever has not seen it yet', async () => {
    const connection = await connectMongodb();
    closeAfterwards(connection.close);
    const readModels = await mongodbReadModels(connection, { version: 'v1', collections: COLLECTIONS });
    closeAfterwards(readModels.close);
    const former = await firstSet(readModels);
    expect(await readModels.succeed(await readModels.create(LOG), former)).toBe(true);
    const gates = connection.db.collection(`progress_${former.id}`);
    const closed = { '_id.tenant': '', closed_by: { $exists: true } };
    const began = monotonicMs();
    await awaitSwitch(connection, former.id, (await gates.findOne(closed))!['closed_by'] as string);
    expect(monotonicMs() - began).toBeLessThan(1_000);
    expect(await gates.countDocuments(closed)).toBe(32);
  });

  it.each<['before' | 'after', number]>([
    ['before', 1],
    ['before', 2],
    ['after', 1],
    ['after', 2],
  ])('commit once if the connection is cut %s the commit, %i times', async (when, times) => {
    const { url, faults } = await mongodbBehindProxy();
    const set = await firstSet(await openAt(url));
    faults.add({ command: 'commitTransaction', times, action: { type: 'drop', when } });
    expect(await add(set)).toEqual(['done']);
    expect(faults.affected).toBe(times);
    expect(await countIn(set)).toBe(1);
    expect(await add(set)).toEqual(['done']);
    expect(await set.furthest()).toEqual(at(2));
    expect(await countIn(set)).toBe(2);
  });

  it('write nothing if a statement of a transaction fails', async () => {
    const { url, faults } = await mongodbBehindProxy();
    const set = await firstSet(await openAt(url));
    faults.add({ command: 'insert', collection: /^notes_/, action: { type: 'error', code: 8_000 } });
    expect(await refusedWith(add(set))).toBe('read_models_unavailable');
    expect([await set.progress([ONE]), await set.furthest()]).toEqual([[undefined], undefined]);
    expect(await countIn(set)).toBe(0);
    expect(await add(set)).toEqual(['done']);
  });

  it('start a build over that was interrupted', async () => {
    const { url, faults } = await mongodbBehindProxy();
    const readModels = await openAt(url);
    const set = await readModels.create(LOG);
    expect(await add(set)).toEqual(['done']);
    const collection = 'read_model_sets';
    faults.add({ command: 'findAndModify', collection, action: { type: 'error', code: 8_000 } });
    expect(await refusedWith(add(set))).toBe('read_models_unavailable');
    expect(await add(set)).toBe('superseded');
    expect(await set.renew()).toBe(false);
    expect(await refusedWith(readModels.succeed(set, undefined))).toBe('read_models_unavailable');
  });

  it('wait for a majority once for each commit, and take no more round trips than needed', async () => {
    const { url, roundTrips } = await mongodbBehindProxy();
    const readModels = await openAt(url);
    const set = await firstSet(readModels);
    const tripsOf = async (work: () => Promise<unknown>) => {
      roundTrips.reset();
      await work();
      return Object.fromEntries(
        Object.entries(roundTrips.table()).map(([name, count]) => [name.replace(`_${set.id}`, ''), count]),
      );
    };
    const before = await beforeIn(set, ONE, TWO);
    const first = await Promise.all([ONE, TWO].map((id) => commitOf(set, id, 1, [note(id, 'a', {})])));
    expect(await tripsOf(() => set.advance(before, async () => first))).toEqual({
      'update progress': 1,
      'insert notes': 1,
      commitTransaction: 1,
    });
    expect(roundTrips.inTurn()).toBe(3);
    expect(roundTrips.awaitingMajority()).toEqual(['commitTransaction']);
    const known = await beforeIn(set, ONE, TWO);
    const second = await Promise.all([ONE, TWO].map((id) => commitOf(set, id, 2, [note(id, 'a', {})])));
    expect(await tripsOf(() => set.advance(known, async () => second, at(2)))).toEqual({
      'update progress': 1,
      'findAndModify read_model_sets': 1,
      'update notes': 1,
      commitTransaction: 1,
    });
    const live = () => readModels.live();
    await live();
    expect(await tripsOf(() => Promise.all([live(), set.get(ONE, 'notes', 'a')]))).toEqual({
      'find read_model_sets': 1,
      'find notes': 1,
    });
    expect(roundTrips.inTurn()).toBe(1);
  });

  it('commit nothing to a set that got a successor after the work began', async () => {
    const readModels = await openAt(mongodbUrl());
    const former = await firstSet(readModels);
    const successor = await readModels.create(LOG);
    const late = former.advance(await beforeIn(former, ONE), async () => {
      expect(await readModels.succeed(successor, former)).toBe(true);
      return [await commitOf(former, ONE, 1, [note(ONE, 'a', {})])];
    });
    expect(await late).toBe('superseded');
    expect(await former.progress([ONE])).toEqual([undefined]);
  });

  it('give a lease to another process if the clock of the server was set back', async () => {
    const url = mongodbUrl();
    const [one, two] = [await openAt(url), await openAt(url)];
    expect(await one.lease!.hold()).toBe(true);
    const { db, close } = await connectMongodb(url);
    closeAfterwards(close);
    const renewed_at = new Date(Date.now() + 3_600_000);
    await db.collection('read_model_leases').updateOne({}, { $set: { renewed_at } });
    expect(await two.lease!.hold()).toBe(true);
  });

  it('drop the collections of a removed set, and what a suspended builder wrote afterwards', async () => {
    const url = mongodbUrl();
    const readModels = await openAt(url, { graceMs: 0 });
    const live = await firstSet(readModels);
    const { db, close } = await connectMongodb(url);
    closeAfterwards(close);
    const namesOf = async ({ id }: ReadModelSet) =>
      (await db.listCollections({}, { nameOnly: true }).toArray()).filter(({ name }) => name.endsWith(id))
        .length;
    const [one, two] = [await readModels.create(LOG), await readModels.create(LOG)];
    expect(await namesOf(one)).toBe(4);
    expect(await readModels.remove(one.id)).toBe(true);
    expect(await namesOf(one)).toBe(0);
    await db.collection(`notes_${one.id}`).insertOne({});
    expect(await namesOf(one)).toBe(1);
    expect(await readModels.remove(two.id)).toBe(true);
    expect([await namesOf(one), await namesOf(two), await namesOf(live)]).toEqual([0, 0, 4]);
  });

  it('stay where they are if a switch before the last one is reported late', async () => {
    const url = mongodbUrl();
    const readModels = await openAt(url, { graceMs: 0 });
    const first = await firstSet(readModels);
    const [second, third] = [await readModels.create(LOG), await readModels.create(LOG)];
    expect(await readModels.succeed(second, first)).toBe(true);
    expect(await readModels.succeed(third, second)).toBe(true);
    await until(() => readModels.remove(second.id));
    await readModels.succeed(second, first).catch(() => false);
    expect((await (await openAt(url)).live())?.set.id).toBe(third.id);
  });

  it('refuse a server that is no replica set', async () => {
    const mongod = await findMongod();
    const folder = mkdtempSync(join(tmpdir(), 'standalone-'));
    const port = await freePort();
    const args = ['--dbpath', folder, '--port', port, '--bind_ip', '127.0.0.1', '--nounixsocket'];
    const server = spawn(mongod!, args, { stdio: 'ignore' });
    closeAfterwards(async () => {
      server.kill('SIGKILL');
      await once(server, 'exit');
      rmSync(folder, { recursive: true });
    });
    const connection = await mongoConnection(`mongodb://127.0.0.1:${port}/test`, {
      waitMs: 30_000,
      onError: () => undefined,
    });
    closeAfterwards(connection.close);
    await expect(
      mongodbReadModels(connection, { version: 'v1', collections: COLLECTIONS }),
    ).rejects.toMatchObject({
      code: 'read_models_unavailable',
      message: expect.stringMatching(/is not a replica set.*rs\.initiate/),
      more: { isFinal: true },
    });
  });
});
