import { BSON, MongoClient, type Collection, type Db, type Document } from 'mongodb';
import { randomUUID } from 'node:crypto';
import { startMongoServer, type MongoServer } from '../support/mongodb/server';

/**
 * What the read models rely on, according to MongoDB's documentation. The stand-in must behave the same, and so must
 * the server that `npm run test:mongodb` runs this on.
 */
const GIVEN = process.env['TEST_MONGODB_URL'] ?? '';

/** Where FerretDB 1.24.2 deviates from MongoDB's documentation, as found by these tests. */
const exceptOnFerretDb =
  (why: string) =>
  (name: string, test: () => Promise<void>): void =>
    process.env['TEST_MONGODB_KIND'] === 'ferretdb'
      ? it.skip(`${name} (FerretDB: ${why})`, test)
      : it(name, test);

type Row = { _id: string | number } & Document;

describe(`MongoDB's behaviour, on ${GIVEN === '' ? 'the stand-in' : 'the given server'}`, () => {
  let server: MongoServer | undefined;
  let client: MongoClient;
  let db: Db;

  beforeAll(async () => {
    server = GIVEN === '' ? await startMongoServer() : undefined;
    client = new MongoClient(server?.url ?? GIVEN, { serverSelectionTimeoutMS: 2_000 });
    db = client.db(`test_${randomUUID().slice(0, 8)}`);
  });
  afterAll(async () => {
    await db.dropDatabase();
    await client.close();
    await server?.close();
  });
  const collection = (): Collection<Row> => db.collection<Row>(randomUUID());
  const filled = async (...rows: readonly Document[]): Promise<Collection<Row>> => {
    const made = collection();
    await made.insertMany(rows.map((row, at) => ({ _id: at, ...row })));
    return made;
  };
  const ids = (rows: readonly Document[]): readonly unknown[] => rows.map(({ _id }) => _id as unknown);

  describe('filters', () => {
    const ROWS = [
      { n: 1, s: 'a', in: { x: 1 } },
      { n: 2, s: 'b', in: { x: 2, y: null } },
      { n: 2.5, s: 'B', in: {} },
      { n: '2', s: null },
      { n: null, list: [1, 5] },
      { list: [2, 3] },
    ] as const;
    const CASES: readonly [filter: Document, expected: readonly number[]][] = [
      [{}, [0, 1, 2, 3, 4, 5]],
      [{ n: 2 }, [1]],
      [{ n: '2' }, [3]],
      [{ n: { $eq: 1 } }, [0]],
      [{ n: { $ne: 1 } }, [1, 2, 3, 4, 5]],
      [{ n: { $gt: 1 } }, [1, 2]],
      [{ n: { $gte: 1, $lt: 2.5 } }, [0, 1]],
      [{ n: { $lte: 2 } }, [0, 1]],
      [{ n: { $gt: '1' } }, [3]],
      [{ n: null }, [4, 5]],
      [{ n: { $exists: false } }, [5]],
      [{ n: { $exists: true } }, [0, 1, 2, 3, 4]],
      [{ n: { $in: [1, '2', null] } }, [0, 3, 4, 5]],
      [{ n: { $nin: [1, '2', null] } }, [1, 2]],
      [{ n: { $not: { $gt: 1 } } }, [0, 3, 4, 5]],
      [{ s: { $gte: 'B' } }, [0, 1, 2]],
      [{ s: { $lt: 'a' } }, [2]],
      [{ 'in.x': 2 }, [1]],
      [{ 'in.x': { $gte: 1 } }, [0, 1]],
      [{ 'in.y': null }, [0, 1, 2, 3, 4, 5]],
      [{ in: { x: 1 } }, [0]],
      [{ in: { x: 2 } }, []],
      [{ $or: [{ n: 1 }, { s: 'b' }] }, [0, 1]],
      [{ $and: [{ n: { $gt: 1 } }, { s: 'b' }] }, [1]],
      [{ $nor: [{ n: 1 }, { s: 'b' }] }, [2, 3, 4, 5]],
      [{ n: { $gt: 1 }, $or: [{ s: 'b' }, { s: 'a' }] }, [1]],
      [{ list: 5 }, [4]],
      [{ list: [2, 3] }, [5]],
      [{ _id: { $in: [0, 3, 9] } }, [0, 3]],
    ];
    let rows: Collection<Row>;
    let indexed: Collection<Row>;
    beforeAll(async () => {
      rows = await filled(...ROWS);
      indexed = await filled(...ROWS);
      await indexed.createIndexes([{ key: { n: -1, s: 1 } }, { key: { s: 1 } }, { key: { 'in.x': 1 } }]);
    });
    it.each(CASES.map(([filter, expected]) => [JSON.stringify(filter), filter, expected] as const))(
      '%s',
      async (_, filter, expected) => {
        expect(ids(await rows.find(filter).sort({ _id: 1 }).toArray())).toEqual(expected);
        expect(ids(await indexed.find(filter).sort({ _id: 1 }).toArray())).toEqual(expected);
      },
    );
    it('refuse an unknown operator', async () => {
      await expect(rows.findOne({ n: { $no: 1 } })).rejects.toMatchObject({ code: 2 });
    });
  });

  describe('order', () => {
    it('is by type first, numbers of all kinds together', async () => {
      const values: readonly unknown[] = [
        null,
        BSON.Long.fromString('-9007199254740993'),
        -1.5,
        -1,
        0,
        new BSON.Int32(1),
        1.5,
        BSON.Long.fromString('9007199254740993'),
        '',
        'a',
        { a: 1 },
        new BSON.Binary(Buffer.from([1])),
        new BSON.ObjectId('000000000000000000000001'),
        false,
        true,
        new Date(-5),
        new Date(5),
      ];
      const rows = await filled(...values.map((v) => ({ v })).toReversed());
      const expected = values.map((_, at) => values.length - 1 - at);
      expect(ids(await rows.find().sort({ v: 1 }).toArray())).toEqual(expected);
      expect(ids(await rows.find().sort({ v: -1 }).toArray())).toEqual(expected.toReversed());
    });

    it('of texts is by their UTF-8 bytes', async () => {
      const texts = ['', '\0', 'A', 'Z', 'a', 'a\0', 'a\0b', 'aa', 'é', '\ud7ff', '\uffff', '😀', '😀a'];
      const rows = await filled(...texts.map((s) => ({ s })).toReversed());
      await rows.createIndex({ s: 1 });
      const found = await rows.find().sort({ s: 1 }).toArray();
      expect(found.map(({ s }) => s)).toEqual(texts);
      for (const [at, text] of texts.entries())
        expect(await rows.countDocuments({ s: { $lt: text } })).toBe(at);
    });

    it('can be by several fields, in either direction, with an index and without', async () => {
      const all = ['c', 'a', 'b'].flatMap((a) => [2, 3, 1].map((b) => ({ a, b })));
      const rows = await filled(...all);
      const want = (sign: number) =>
        all.toSorted((l, r) => (l.a === r.a ? sign * (r.b - l.b) : sign * (l.a < r.a ? -1 : 1)));
      for (const isIndexed of [false, true]) {
        if (isIndexed) await rows.createIndex({ a: 1, b: -1 });
        expect(await rows.find().sort({ a: 1, b: -1 }).project({ _id: 0 }).toArray()).toEqual(want(1));
        expect(await rows.find().sort({ a: -1, b: 1 }).project({ _id: 0 }).toArray()).toEqual(want(-1));
        const last = await rows
          .find({ a: 'b', b: { $lte: 2 } })
          .sort({ b: -1 })
          .limit(1)
          .toArray();
        expect(last).toMatchObject([{ a: 'b', b: 2 }]);
      }
    });
  });

  describe('documents', () => {
    it('are returned as they were stored', async () => {
      const rows = collection();
      const stored = {
        _id: 'a',
        z: 1,
        text: 'NUL \0, €, 😀',
        numbers: [0, 2 ** 53, -(2 ** 53), 1e308, 5e-324, 0.1],
        nested: { deep: [{ er: [null] }], '': 'no name' },
        isTrue: true,
        at: new Date(0),
        bytes: new BSON.Binary(Buffer.from([0, 255])),
      };
      await rows.insertOne(stored);
      const found = await rows.findOne({ _id: 'a' });
      expect(found).toEqual(stored);
      expect(Object.keys(found!)).toEqual(Object.keys(stored));
    });

    exceptOnFerretDb('makes it 0')('may have a negative zero', async () => {
      const rows = await filled({ n: -0 });
      expect(await rows.findOne()).toEqual({ _id: 0, n: -0 });
    });

    exceptOnFerretDb('refuses arrays in arrays')('may have arrays in arrays', async () => {
      const rows = await filled({ a: [[1], [[2]]] });
      expect(await rows.findOne()).toEqual({ _id: 0, a: [[1], [[2]]] });
    });

    it('can be projected to some of their fields', async () => {
      const rows = await filled({ a: { b: 1, c: 2 }, d: 3 });
      const shown = (projection: Document) => rows.findOne({ _id: 0 }, { projection });
      expect(await shown({ d: 1 })).toEqual({ _id: 0, d: 3 });
      expect(await shown({ _id: 0, 'a.b': 1 })).toEqual({ a: { b: 1 } });
      expect(await shown({ d: 0 })).toEqual({ _id: 0, a: { b: 1, c: 2 } });
      expect(await shown({ _id: 0, 'a.c': 0 })).toEqual({ a: { b: 1 }, d: 3 });
    });

    exceptOnFerretDb('takes them')(
      'of more than 16 MB are refused, and of slightly less are accepted',
      async () => {
        const rows = collection();
        const max = 16 * 1024 * 1024;
        await rows.insertOne({ _id: 1, text: 'x'.repeat(max - 200) });
        await expect(rows.updateOne({ _id: 1 }, { $set: { more: 'x'.repeat(300) } })).rejects.toThrow();
        expect(await rows.findOne({ _id: 1 }, { projection: { text: 0 } })).toEqual({ _id: 1 });
      },
    );
  });

  describe('cursors', () => {
    it('return everything in batches, and more than 101 documents at once only on request', async () => {
      const rows = await filled(...Array.from({ length: 250 }, (_, n) => ({ n })));
      const cursor = rows.find().sort({ n: 1 });
      await cursor.next();
      expect(cursor.bufferedCount()).toBe(100);
      expect(1 + (await cursor.toArray()).length).toBe(250);
      expect(ids(await rows.find().sort({ n: 1 }).batchSize(7).limit(20).toArray())).toHaveLength(20);
      expect(ids(await rows.find().sort({ n: 1 }).skip(240).toArray())).toHaveLength(10);
    });

    it('return more than 16 MB in several batches', async () => {
      const rows = await filled(...Array.from({ length: 20 }, () => ({ text: 'x'.repeat(1_000_000) })));
      expect(await rows.find().batchSize(1_000).toArray()).toHaveLength(20);
    });
  });

  describe('updates', () => {
    it('replace a document, and keep its _id', async () => {
      const rows = await filled({ n: 1, gone: true });
      expect(await rows.replaceOne({ _id: 0 }, { n: 2 })).toMatchObject({
        matchedCount: 1,
        modifiedCount: 1,
      });
      expect(await rows.findOne()).toEqual({ _id: 0, n: 2 });
      expect(await rows.replaceOne({ _id: 5 }, { n: 2 })).toMatchObject({
        matchedCount: 0,
        upsertedCount: 0,
      });
      await expect(rows.updateOne({ _id: 0 }, { $set: { _id: 1 } })).rejects.toMatchObject({ code: 66 });
    });

    exceptOnFerretDb('counts it as modified')(
      'modify nothing if the document is already the same',
      async () => {
        const rows = await filled({ n: 2 });
        expect(await rows.replaceOne({ _id: 0 }, { n: 2 })).toMatchObject({
          matchedCount: 1,
          modifiedCount: 0,
        });
      },
    );

    it('replace only an older document, and refuse an upsert if there is a newer one', async () => {
      const rows = collection();
      const put = (n: number) => rows.replaceOne({ _id: 'a', n: { $lt: n } }, { n }, { upsert: true });
      expect(await put(3)).toMatchObject({ upsertedCount: 1, upsertedId: 'a' });
      expect(await put(4)).toMatchObject({ matchedCount: 1 });
      for (const n of [4, 2]) {
        await expect(put(n)).rejects.toMatchObject({ code: 11000 });
      }
      expect(await rows.findOne()).toEqual({ _id: 'a', n: 4 });
    });

    it('change fields', async () => {
      const rows = await filled({ a: 1, b: { c: 1 }, d: 5 });
      const change = async (update: Document) => {
        await rows.updateOne({ _id: 0 }, update);
        return rows.findOne({}, { projection: { _id: 0 } });
      };
      expect(await change({ $set: { a: 2, 'b.e': 3 } })).toEqual({ a: 2, b: { c: 1, e: 3 }, d: 5 });
      expect(await change({ $unset: { 'b.c': '', nothing: '' } })).toEqual({ a: 2, b: { e: 3 }, d: 5 });
      expect(await change({ $inc: { a: 2, 'b.f': -1 } })).toEqual({ a: 4, b: { e: 3, f: -1 }, d: 5 });
      expect(await change({ $max: { d: 4 }, $min: { a: 3 } })).toEqual({ a: 3, b: { e: 3, f: -1 }, d: 5 });
      expect(await change({ $setOnInsert: { a: 9 }, $set: { d: 6 } })).toMatchObject({ a: 3, d: 6 });
    });

    it('insert with the values that the filter compares for equality', async () => {
      const rows = collection();
      const update = { $setOnInsert: { at: 1 }, $inc: { n: 2 } };
      await rows.updateOne({ _id: 'x', kind: 'k', n: { $gt: 5 } }, update, { upsert: true });
      expect(await rows.findOne()).toEqual({ _id: 'x', kind: 'k', at: 1, n: 2 });
    });

    it('can change many documents', async () => {
      const rows = await filled({ n: 1 }, { n: 2 }, { n: 3 });
      expect(await rows.updateMany({ n: { $gt: 1 } }, { $set: { x: 1 } })).toMatchObject({
        modifiedCount: 2,
      });
      expect(await rows.deleteMany({ x: 1 })).toMatchObject({ deletedCount: 2 });
      expect(await rows.deleteOne({ n: 9 })).toMatchObject({ deletedCount: 0 });
      expect(ids(await rows.find().toArray())).toEqual([0]);
    });

    it('with findAndModify return the document before or after', async () => {
      const rows = await filled({ n: 1 }, { n: 2 });
      const change = { $inc: { n: 10 } };
      expect(await rows.findOneAndUpdate({}, change, { sort: { n: -1 } })).toEqual({ _id: 1, n: 2 });
      expect(await rows.findOneAndUpdate({ _id: 0 }, change, { returnDocument: 'after' })).toEqual({
        _id: 0,
        n: 11,
      });
      expect(await rows.findOneAndUpdate({ _id: 8 }, change)).toBeNull();
      const upserting = { upsert: true, returnDocument: 'after' } as const;
      expect(await rows.findOneAndUpdate({ _id: 8 }, change, upserting)).toEqual({ _id: 8, n: 10 });
      expect(await rows.findOneAndReplace({ _id: 8 }, { n: 0 })).toEqual({ _id: 8, n: 10 });
      expect(await rows.findOneAndDelete({ _id: 8 })).toEqual({ _id: 8, n: 0 });
    });
  });

  describe('bulk writes', () => {
    const operations = [2, 5, 1, 6].map((n, at) => ({
      replaceOne: { filter: { _id: at % 2, n: { $lt: n } }, replacement: { n }, upsert: true },
    }));

    const INDEX = 'stops at the first error and reports it as that of the first write';
    exceptOnFerretDb(INDEX)('continue after an error if they are unordered', async () => {
      const rows = collection();
      const error = await rows.bulkWrite(operations, { ordered: false }).catch((caught: unknown) => caught);
      expect(error).toMatchObject({ code: 11000, writeErrors: [{ index: 2 }] });
      expect(await rows.find().sort({ _id: 1 }).toArray()).toEqual([
        { _id: 0, n: 2 },
        { _id: 1, n: 6 },
      ]);
    });

    exceptOnFerretDb(INDEX)('stop at an error if they are ordered', async () => {
      const rows = collection();
      await expect(rows.bulkWrite(operations)).rejects.toMatchObject({ writeErrors: [{ index: 2 }] });
      expect(await rows.findOne({ _id: 1 })).toEqual({ _id: 1, n: 5 });
    });

    it('return the total counts', async () => {
      const rows = await filled({ n: 1 });
      expect(
        await rows.bulkWrite([
          { insertOne: { document: { _id: 'new', n: 3 } } },
          { updateOne: { filter: { _id: 0 }, update: { $set: { n: 2 } } } },
          { deleteOne: { filter: { _id: 'new' } } },
        ]),
      ).toMatchObject({ insertedCount: 1, modifiedCount: 1, deletedCount: 1 });
    });

    it('can write ten thousand documents', async () => {
      const rows = collection();
      await rows.insertMany(Array.from({ length: 10_000 }, (_, n) => ({ _id: n, n })));
      expect(await rows.countDocuments({ n: { $gte: 100 } })).toBe(9_900);
      expect(await rows.estimatedDocumentCount()).toBe(10_000);
    });
  });

  describe('indexes', () => {
    it('that are unique refuse a second document', async () => {
      const rows = await filled({ a: 1, b: 1 }, { a: 1, b: 2 });
      await rows.createIndex({ a: 1, b: 1 }, { unique: true });
      await expect(rows.insertOne({ _id: 'x', a: 1, b: 2 })).rejects.toMatchObject({ code: 11000 });
      await rows.updateOne({ _id: 0 }, { $set: { b: 3 } });
      await rows.insertOne({ _id: 'x', a: 1, b: 1 });
      expect(await rows.countDocuments()).toBe(3);
    });

    exceptOnFerretDb('fails with code 1')('that are unique report the duplicate', async () => {
      const rows = await filled({ a: 1 }, { a: 2 });
      await rows.createIndex({ a: 1 }, { unique: true });
      await expect(rows.updateOne({ _id: 0 }, { $set: { a: 2 } })).rejects.toMatchObject({
        code: 11000,
        keyPattern: { a: 1 },
        keyValue: { a: 2 },
      });
    });

    exceptOnFerretDb('fails with code 1')('cannot be created as unique over duplicates', async () => {
      const rows = await filled({ a: 1 }, { a: 1 });
      await expect(rows.createIndex({ a: 1 }, { unique: true })).rejects.toMatchObject({ code: 11000 });
    });

    it('can be listed, created twice without an error, and dropped', async () => {
      const rows = collection();
      await rows.createIndex({ a: 1, b: -1 }, { name: 'ab' });
      await rows.createIndex({ a: 1, b: -1 }, { name: 'ab' });
      const listed = await rows.listIndexes().toArray();
      expect(listed).toMatchObject([
        { name: '_id_', key: { _id: 1 } },
        { name: 'ab', key: { a: 1, b: -1 } },
      ]);
      await expect(rows.createIndex({ c: 1 }, { name: 'ab' })).rejects.toMatchObject({ code: 86 });
      await rows.dropIndex('ab');
      expect(await rows.listIndexes().toArray()).toHaveLength(1);
      await expect(rows.dropIndex('ab')).rejects.toMatchObject({ code: 27 });
    });
  });

  describe('collections', () => {
    it('can be listed, dropped, and dropped again', async () => {
      const rows = await filled({ a: 1 });
      const names = async () =>
        (await db.listCollections({ name: rows.collectionName }, { nameOnly: true }).toArray()).map(
          ({ name }) => name,
        );
      expect(await names()).toEqual([rows.collectionName]);
      await rows.drop();
      expect(await names()).toEqual([]);
      expect(await rows.findOne()).toBeNull();
      await rows.drop();
    });

    it('that do not exist have no indexes and no documents', async () => {
      const rows = collection();
      expect(await rows.find({ a: 1 }).toArray()).toEqual([]);
      expect(await rows.deleteMany({})).toMatchObject({ deletedCount: 0 });
      await expect(rows.listIndexes().toArray()).rejects.toMatchObject({ code: 26 });
    });

    it('may have names with dots, but not with dollar signs', async () => {
      const rows = db.collection<Row>(`a.b-c_${randomUUID()}`);
      await rows.insertOne({ _id: 1 });
      expect(await rows.countDocuments()).toBe(1);
    });
  });

  it('refuses unknown commands and fields', async () => {
    await expect(db.command({ nonsense: 1 })).rejects.toMatchObject({ code: 59 });
    await expect(db.command({ find: 'c', nonsense: 1 })).rejects.toThrow();
  });
});
