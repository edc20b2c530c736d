import { MongoClient, type Collection, type Document } from 'mongodb';
import { startMongoProcess } from '../support/mongodb/own-process';
import { startMongoServer, type MongoServer } from '../support/mongodb/server';
import { until } from '../support/waiting';

type Row = { _id: string | number } & Document;

/** What the stand-in for MongoDB does on command, seen through the real driver. */
describe('the stand-in for MongoDB', () => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });
  const connect = (url: string, options: Document = {}): Collection<Row> => {
    const client = new MongoClient(url, { serverSelectionTimeoutMS: 1_500, ...options });
    closing.push(() => client.close());
    return client.db('db').collection<Row>('rows');
  };
  const start = async (options: Document = {}) => {
    const server: MongoServer = await startMongoServer();
    closing.push(() => server.close());
    return { server, rows: connect(server.url, options) };
  };
  const ONCE = { retryWrites: false };
  /** The driver reports a connection cut under it as it finds it, and does not retry every such error. */
  const rolledBack = async (server: MongoServer, rows: Collection<Row>): Promise<void> => {
    server.rollBack();
    await until(() =>
      rows.findOne().then(
        () => true,
        () => false,
      ),
    );
  };
  const all = (rows: Collection<Row>) => rows.find().sort({ _id: 1 }).toArray();

  it('counts round trips by command and collection', async () => {
    const { server, rows } = await start();
    await rows.insertMany(Array.from({ length: 150 }, (_, n) => ({ _id: n })));
    await all(rows);
    await rows.deleteOne({ _id: 1 });
    expect(server.roundTrips.table()).toEqual({
      'insert rows': 1,
      'find rows': 1,
      'getMore rows': 1,
      'delete rows': 1,
    });
    expect(server.roundTrips.count({ command: ['find', 'getMore'], collection: /^row/ })).toBe(2);
    server.roundTrips.reset();
    expect(server.roundTrips.count()).toBe(0);
  });

  describe('drops the connection', () => {
    it.each(['before', 'after'] as const)('%s it applies a write', async (when) => {
      const { server, rows } = await start(ONCE);
      server.faults.add({ command: 'insert', skip: 1, action: { type: 'drop', when } });
      await rows.insertOne({ _id: 1 });
      await expect(rows.insertOne({ _id: 2 })).rejects.toMatchObject({ name: 'MongoNetworkError' });
      await rows.insertOne({ _id: 3 });
      expect(await all(rows)).toHaveLength(when === 'before' ? 2 : 3);
      expect(server.faults.affected).toBe(1);
    });

    it('after some of the writes of a command', async () => {
      const { server, rows } = await start(ONCE);
      server.faults.add({ collection: 'rows', action: { type: 'drop', when: 'between', writes: 2 } });
      await expect(rows.insertMany([{ _id: 1 }, { _id: 2 }, { _id: 3 }])).rejects.toThrow();
      expect(await all(rows)).toEqual([{ _id: 1 }, { _id: 2 }]);
    });

    it.each(['before', 'after', 'between'] as const)('%s writes, which are retried once', async (when) => {
      const { server, rows } = await start();
      server.faults.add({ command: 'update', action: { type: 'drop', when, writes: 1 } });
      await rows.bulkWrite(
        [1, 2, 3].map((id) => ({
          updateOne: { filter: { _id: id }, update: { $inc: { n: 1 } }, upsert: true },
        })),
      );
      expect((await all(rows)).map(({ n }) => n as unknown)).toEqual([1, 1, 1]);
    });
  });

  it('responds slowly, and applies a write that its client gave up on', async () => {
    const { server, rows } = await start({ ...ONCE, socketTimeoutMS: 100 });
    server.faults.add({ command: 'insert', action: { type: 'slow', ms: 300 } });
    await expect(rows.insertOne({ _id: 1 })).rejects.toMatchObject({ name: 'MongoNetworkTimeoutError' });
    expect(await all(rows)).toEqual([]);
    await until(async () => (await all(rows)).length === 1);
  });

  it.each(['before', 'after'] as const)('hangs %s it applies a write', async (when) => {
    const { server, rows } = await start({ ...ONCE, socketTimeoutMS: 100 });
    server.faults.add({ command: 'insert', action: { type: 'hang', when } });
    await expect(rows.insertOne({ _id: 1 })).rejects.toMatchObject({ name: 'MongoNetworkTimeoutError' });
    expect(await all(rows)).toHaveLength(when === 'before' ? 0 : 1);
  });

  it('refuses commands with any error', async () => {
    const { server, rows } = await start(ONCE);
    server.faults.add({ command: 'find', times: 2, action: { type: 'error', code: 2 } });
    await expect(all(rows)).rejects.toMatchObject({ code: 2, codeName: 'BadValue' });
    await expect(all(rows)).rejects.toMatchObject({ code: 2 });
    expect(await all(rows)).toEqual([]);
  });

  it('is not primary until it steps up', async () => {
    const { server, rows } = await start(ONCE);
    await rows.insertOne({ _id: 1 });
    server.stepDown();
    await expect(rows.insertOne({ _id: 2 })).rejects.toMatchObject({ code: 10107 });
    await expect(all(rows)).rejects.toMatchObject({ name: 'MongoServerSelectionError' });
    server.stepUp();
    expect(await all(rows)).toEqual([{ _id: 1 }]);
  });

  it('fails one write of many', async () => {
    const { server, rows } = await start();
    const insert = (from: number, ordered: boolean) =>
      rows.insertMany([{ _id: from }, { _id: from + 1 }, { _id: from + 2 }], { ordered });
    const action = { type: 'writeError', write: 1, code: 8 } as const;
    server.faults.add({ command: 'insert', times: 2, action });
    await expect(insert(1, false)).rejects.toMatchObject({ writeErrors: [{ index: 1, code: 8 }] });
    await expect(insert(4, true)).rejects.toMatchObject({ writeErrors: [{ index: 1, code: 8 }] });
    expect(await all(rows)).toEqual([{ _id: 1 }, { _id: 3 }, { _id: 4 }]);
  });

  it('applies a write and reports that its write concern was not satisfied', async () => {
    const { server, rows } = await start(ONCE);
    server.faults.add({ command: 'insert', action: { type: 'writeConcernError', code: 91 } });
    await expect(rows.insertOne({ _id: 1 })).rejects.toMatchObject({ code: 91 });
    expect(await all(rows)).toEqual([{ _id: 1 }]);
  });

  it('forgets cursors', async () => {
    const { server, rows } = await start();
    await rows.insertMany(Array.from({ length: 10 }, (_, n) => ({ _id: n })));
    const cursor = rows.find().batchSize(2);
    await cursor.next();
    expect(server.openCursors).toBe(1);
    server.killCursors();
    await expect(cursor.toArray()).rejects.toMatchObject({ code: 43 });
    const other = rows.find().batchSize(2);
    await other.next();
    await other.close();
    expect(server.openCursors).toBe(0);
  });

  describe('goes down and comes back', () => {
    it.each([true, false])('with its data: %s', async (withData) => {
      const { server, rows } = await start();
      await rows.insertOne({ _id: 1 });
      await server.leave();
      await expect(all(rows)).rejects.toThrow(/ECONNREFUSED|ECONNRESET/);
      await server.comeBack({ withData });
      expect(await all(rows)).toHaveLength(withData ? 1 : 0);
    });

    it('answers nothing while it is frozen, and the pending commands after that', async () => {
      const { server, rows } = await start();
      await rows.insertOne({ _id: 1 });
      server.freeze();
      const insert = rows.insertOne({ _id: 2 });
      await expect(Promise.race([insert, new Promise((r) => setTimeout(r, 100, 'nothing'))])).resolves.toBe(
        'nothing',
      );
      server.thaw();
      await insert;
      expect(await all(rows)).toHaveLength(2);
    });

    it('as its own process', async () => {
      const server = await startMongoProcess();
      closing.push(server.close);
      const rows = connect(server.url, ONCE);
      await rows.insertOne({ _id: 1 });
      expect(await server.tell({ do: 'roundTrips' })).toEqual({ 'insert rows': 1 });
      await server.tell({
        do: 'fault',
        rule: { command: 'insert', action: { type: 'drop', when: 'after' } },
      });
      await expect(rows.insertOne({ _id: 2 })).rejects.toThrow();
      await server.tell({ do: 'leave' });
      await expect(all(rows)).rejects.toThrow();
      await server.tell({ do: 'comeBack', withData: true });
      expect(await all(rows)).toHaveLength(2);
    });
  });

  describe('as a replica set', () => {
    const majority = { readConcern: { level: 'majority' } } as const;
    const seen = async (rows: Collection<Row>) => [
      (await rows.find().toArray()).length,
      (await rows.find({}, majority).toArray()).length,
    ];

    it('loses writes that no majority has in a rollback', async () => {
      const { server, rows } = await start(ONCE);
      await rows.insertOne({ _id: 'kept' });
      await rows.createIndex({ n: 1 });
      await rows.insertOne({ _id: 'lost', n: 1 }, { writeConcern: { w: 1 } });
      await rows.replaceOne({ _id: 'kept' }, { n: 2 }, { writeConcern: { w: 1 } });
      expect(await seen(rows)).toEqual([2, 1]);
      expect(await rows.findOne({ _id: 'kept' }, majority)).toEqual({ _id: 'kept' });
      await rolledBack(server, rows);
      expect(await all(rows)).toEqual([{ _id: 'kept' }]);
      expect(await rows.find({ n: { $gte: 1 } }).toArray()).toEqual([]);
    });

    it('keeps writes acknowledged by a majority, and everything before them', async () => {
      const { server, rows } = await start(ONCE);
      await rows.insertOne({ _id: 1 }, { writeConcern: { w: 1 } });
      await rows.insertOne({ _id: 2 }, { writeConcern: { w: 'majority' } });
      await rolledBack(server, rows);
      expect(await all(rows)).toHaveLength(2);
    });

    it('restores removed documents and dropped collections in a rollback', async () => {
      const { server, rows } = await start(ONCE);
      await rows.createIndex({ n: 1 }, { unique: true });
      await rows.insertMany([
        { _id: 1, n: 1 },
        { _id: 2, n: 2 },
      ]);
      await rows.deleteOne({ _id: 1 }, { writeConcern: { w: 1 } });
      await rows.drop({ writeConcern: { w: 1 } });
      expect(await seen(rows)).toEqual([0, 2]);
      await rolledBack(server, rows);
      expect(await seen(rows)).toEqual([2, 2]);
      await expect(rows.insertOne({ _id: 3, n: 1 })).rejects.toMatchObject({ code: 11000 });
    });

    it('acknowledges no majority while it cannot reach one', async () => {
      const { server, rows } = await start(ONCE);
      server.replication.hold();
      const insert = rows.insertOne({ _id: 1 });
      await until(async () => (await rows.findOne({ _id: 1 })) !== null);
      expect(await seen(rows)).toEqual([1, 0]);
      server.replication.release();
      await insert;
      expect(await seen(rows)).toEqual([1, 1]);
    });

    it('reports that waiting for a majority timed out, and has applied the write', async () => {
      const { server, rows } = await start(ONCE);
      server.replication.hold();
      const writeConcern = { w: 'majority', wtimeoutMS: 20 } as const;
      await expect(rows.insertOne({ _id: 1 }, { writeConcern })).rejects.toMatchObject({ code: 64 });
      expect(await seen(rows)).toEqual([1, 0]);
      await rolledBack(server, rows);
      expect(await seen(rows)).toEqual([0, 0]);
    });

    it('does not reveal whether a write that waited for a majority was rolled back', async () => {
      const { server, rows } = await start(ONCE);
      server.replication.hold();
      const insert = rows.insertOne({ _id: 1 }).catch((error: unknown) => error);
      await until(async () => (await rows.findOne({ _id: 1 })) !== null);
      server.rollBack();
      expect(await insert).toMatchObject({ name: 'MongoNetworkError' });
      expect(await all(rows)).toEqual([]);
    });
  });

  it('on its own has no majority to wait for', async () => {
    const server = await startMongoServer({ topology: 'standalone' });
    closing.push(() => server.close());
    const rows = connect(server.url);
    await rows.insertOne({ _id: 1 }, { writeConcern: { w: 1 } });
    await rolledBack(server, rows);
    expect(await all(rows)).toHaveLength(1);
  });

  it('lets other connections interleave with the writes of a command', async () => {
    const { server, rows } = await start();
    const other = connect(server.url);
    await other.findOne();
    const insert = (from: string) => Array.from({ length: 50 }, (_, n) => ({ _id: `${from}${n}`, from }));
    const orderOf = async () => {
      await Promise.all([rows.insertMany(insert('a')), other.insertMany(insert('b'))]);
      const order = (await rows.find({}, { sort: { $natural: 1 } }).toArray()).map(
        ({ from }) => from as string,
      );
      await rows.deleteMany({});
      return order.join('').replaceAll(/(.)\1+/g, '$1');
    };
    expect((await orderOf()).length).toBe(2);
    server.interleave(true);
    expect((await orderOf()).length).toBeGreaterThan(2);
  });

  describe('explains how it finds documents', () => {
    const planOf = async (rows: Collection<Row>, filter: Document, sort: Document = {}) => {
      const { queryPlanner } = await rows.find(filter, { sort }).explain();
      const stages: string[] = [];
      for (let at = queryPlanner.winningPlan as Document | undefined; at; at = at['inputStage'] as Document)
        stages.push(`${at['stage']}${at['indexName'] === undefined ? '' : ` ${at['indexName']}`}`);
      return stages.join(' < ');
    };
    it('by an index or by a scan', async () => {
      const { rows } = await start();
      await rows.createIndex({ a: 1, b: -1 }, { name: 'ab' });
      await rows.insertMany([1, 2, 3].map((n) => ({ _id: n, a: n, b: n, c: n })));
      expect(await planOf(rows, { _id: 1 })).toBe('IDHACK');
      expect(await planOf(rows, { _id: { $gt: 1 } })).toBe('FETCH < IXSCAN _id_');
      expect(await planOf(rows, { a: 1 }, { b: -1 })).toBe('FETCH < IXSCAN ab');
      expect(await planOf(rows, { a: 1 }, { b: 1 })).toBe('FETCH < IXSCAN ab');
      expect(await planOf(rows, { a: 1, b: { $lt: 5 } }, { b: 1 })).toBe('FETCH < IXSCAN ab');
      expect(await planOf(rows, {}, { a: -1, b: 1 })).toBe('FETCH < IXSCAN ab');
      expect(await planOf(rows, { a: 1 }, { c: 1 })).toBe('SORT < FETCH < IXSCAN ab');
      expect(await planOf(rows, { a: { $gt: 1 } }, { b: 1 })).toBe('SORT < FETCH < IXSCAN ab');
      expect(await planOf(rows, {}, { b: 1 })).toBe('SORT < COLLSCAN');
      expect(await planOf(rows, { c: 1 })).toBe('COLLSCAN');
    });

    it('and how many it examined', async () => {
      const { rows } = await start();
      await rows.createIndex({ a: 1 });
      await rows.insertMany(Array.from({ length: 100 }, (_, n) => ({ _id: n, a: n % 10 })));
      const { executionStats } = await rows.find({ a: 3 }).limit(4).explain('executionStats');
      expect(executionStats).toMatchObject({ nReturned: 4, totalKeysExamined: 4, totalDocsExamined: 4 });
      const whole = await rows.find({ b: 3 }).explain('executionStats');
      expect(whole.executionStats).toMatchObject({ nReturned: 0, totalDocsExamined: 100 });
    });
  });
});
