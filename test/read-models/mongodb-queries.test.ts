import { randomUUID } from 'node:crypto';
import { findApplications, findLiveApplication, findLiveKeys } from '../../projections/application-pages';
import { findKeyRecord } from '../../projections/applications';
import { findLogs, type LogFilter } from '../../projections/log-pages';
import { listEntityTypes } from '../../projections/logs';
import { projections } from '../../projections/projections';
import type { Collection, Document, Reader } from '../../projections/projector';
import { findTenant } from '../../projections/tenants';
import { reportUsage } from '../../projections/usage';
import { findIn, indexesFor, lastBefore, type MongoQuery } from '../../src/read-models/mongodb/queries';
import { idOf, storedTenant, type Stored } from '../../src/read-models/mongodb/layout';
import { describeMongodb } from '../support/mongodb/databases';
import { connectMongodb } from '../support/mongodb-under-test';

/** Every query that the program makes, with every kind of parameter. */
const TENANT = randomUUID();
const dates = { start: '2026-01-01T00:00:00.000Z', end: '2026-02-01T00:00:00.000Z' };
const filters: readonly LogFilter[] = [{}, dates].flatMap((when) => [
  when,
  { ...when, entityType: 'token' },
  { ...when, entityId: 'e1' },
  { ...when, entityType: 'token', entityId: 'e1' },
  { ...when, actorId: 'a1' },
  { ...when, operation: 'read' },
  { ...when, traceId: 't1' },
]);
const page = { page: 3, size: 20 };
const questions: readonly (readonly [string, (reader: Reader) => Promise<unknown>])[] = [
  ['the tenant', (reader) => findTenant(reader, TENANT)],
  ['a key', (reader) => findKeyRecord(reader, TENANT, 'digest')],
  [
    'the Applications',
    (reader) => findApplications(reader, TENANT, { filter: { types: ['public'] }, ...page }),
  ],
  ['an Application', (reader) => findLiveApplication(reader, TENANT, 'a')],
  ['its keys', (reader) => findLiveKeys(reader, TENANT, 'a', dates.start)],
  ['the usage', (reader) => reportUsage(reader, TENANT, '2026-01-15T00:00:00.000Z')],
  ['the entity types', (reader) => listEntityTypes(reader, TENANT)],
  ...filters.flatMap((filter): (readonly [string, (reader: Reader) => Promise<unknown>])[] => {
    const name = Object.keys(filter).join() || 'nothing';
    return [
      [`logs by ${name}`, (reader) => findLogs(reader, TENANT, { filter, ...page })],
      [
        `logs by ${name} after a cursor`,
        (reader) => findLogs(reader, TENANT, { filter, ...page, olderThan: { number: 9 } }),
      ],
    ];
  }),
];

const collectionOf = (name: string): Collection =>
  projections
    .flatMap(({ collections }) => collections)
    .find((collection) => collection.name === name) as Collection;

/** What a query requests from the store. Every document that it reads exists. */
const askedBy = async (ask: (reader: Reader) => Promise<unknown>) => {
  const asked: (MongoQuery & { readonly collection: Collection })[] = [];
  const row = {
    count: 1_000,
    application_id: 'a',
    id: 'k',
    digest: 'digest',
    values: [],
    entries: [],
    number: 9,
    type_number: 9,
    entity_number: 9,
    typed_entity_number: 9,
  };
  const reader: Reader = {
    get: async () => row,
    find: async (tenantId, name, query) => {
      asked.push({ ...findIn(collectionOf(name), tenantId, query), collection: collectionOf(name) });
      return [row];
    },
    countsBefore: async (...[, , , values]) => values.map((_, at) => 400 + 100 * at),
  };
  await ask(reader);
  return asked;
};

/** As MongoDB reports it. */
interface Plan {
  readonly stage: string;
  readonly keyPattern?: Readonly<Record<string, number>>;
  readonly inputStage?: Plan;
}

const stagesOf = (plan: Plan): readonly Plan[] => [
  plan,
  ...(plan.inputStage === undefined ? [] : stagesOf(plan.inputStage)),
];

const isRange = (value: unknown): boolean => typeof value === 'object' && value !== null;

describe('every query to MongoDB', () => {
  it.each(questions)('follows a declared index from its start: %s', async (_, ask) => {
    for (const { filter, options, collection } of await askedBy(ask)) {
      const { hint, sort } = options;
      const index = Object.keys(hint);
      const declared = [['_id'], ...indexesFor(collection).map(({ key }) => Object.keys(key))];
      expect(declared).toContainEqual(index);
      const conditions = Object.entries(filter);
      const equal = conditions.filter(([, value]) => !isRange(value)).map(([field]) => field);
      const ranges = conditions.filter(([, value]) => isRange(value)).map(([field]) => field);
      // Equality fields first, then the sort order, whose first field has the range.
      expect(new Set(index.slice(0, equal.length))).toEqual(new Set(equal));
      expect(index.slice(equal.length)).toEqual(Object.keys(sort as object));
      const rest = ranges.filter((field) => field !== 'doc');
      for (const field of rest) expect(index.slice(equal.length)).toContain(field);
      if (rest.length > 0) expect(rest).toContain(index[equal.length]);
      expect(options.limit).toBeLessThanOrEqual(1_000);
    }
  });

  it('is covered by this list', async () => {
    const asked = (await Promise.all(questions.map(([, ask]) => askedBy(ask)))).flat();
    const hints = new Set(asked.map(({ options }) => Object.keys(options.hint).join(' ')));
    for (const { key } of indexesFor(collectionOf('rows')).filter(({ name }) => !name?.endsWith('_before')))
      expect(hints).toContain(Object.keys(key).join(' '));
    expect(hints).toContain('t doc.digest _id');
    expect(hints).toContain('t doc.live_in doc.ends_at _id');
  });
});

/** As many rows as the heads say, one a minute, all in one line of each kind. */
const ROWS = 1_000;
const rowAt = (number: number): Document => ({
  number,
  type_number: number,
  entity_number: number,
  typed_entity_number: number,
  entity_type: 'token',
  entity_id: 'e1',
  actor_id: 'a1',
  operation: 'read',
  trace_id: 't1',
  created_at: new Date(Date.parse(dates.start) + (number - ROWS / 2) * 60_000).toISOString(),
});

/** As MongoDB reports it. */
interface Executed {
  readonly executionStats: {
    readonly nReturned: number;
    readonly totalDocsExamined: number;
    readonly totalKeysExamined: number;
  };
}

describeMongodb('every query to a real MongoDB', () => {
  const filled = async (docAt: (number: number) => Document) => {
    const { db } = await connectMongodb();
    const rows = db.collection<Stored>('rows');
    await rows.createIndexes([...indexesFor(collectionOf('rows'))]);
    const stored = (at: number) => ({ n: 1, t: storedTenant(TENANT), doc: docAt(at + 1) });
    await rows.insertMany(
      Array.from({ length: ROWS }, (_, at) => ({ _id: idOf(TENANT, randomUUID()), ...stored(at) })),
    );
    return rows;
  };

  it('reads no more than it returns', async () => {
    const rows = await filled(rowAt);
    const asked = (await Promise.all(questions.map(([, ask]) => askedBy(ask)))).flat();
    let returned = 0;
    for (const { filter, options } of asked.filter(({ collection }) => collection.name === 'rows')) {
      const { executionStats } = (await rows
        .find(filter, options)
        .explain('executionStats')) as unknown as Executed;
      const { nReturned, totalDocsExamined, totalKeysExamined } = executionStats;
      const isMore = totalDocsExamined > nReturned || totalKeysExamined > nReturned + 3;
      expect({ filter, isMore }).toEqual({ filter, isMore: false });
      returned += nReturned;
    }
    expect(returned).toBeGreaterThan(300);
  });

  it('finds the number of a value by one lookup', async () => {
    const card = { entity_type: 'card', entity_id: 'e2' };
    const rows = await filled((number) => ({ ...rowAt(number), ...(number % 2 === 1 ? {} : card) }));
    for (const [index, equal, value] of [
      ['by_number', [], dates.start],
      ['by_type', ['token'], 500],
      ['by_entity', ['e1'], 500],
      ['by_typed_entity', ['e1', 'token'], 500],
    ] as const) {
      const stages = lastBefore(collectionOf('rows'), TENANT, { index, equal }, value);
      expect(await rows.aggregate(stages).toArray()).toEqual([{ number: 499 }]);
      const explained = JSON.stringify(await rows.aggregate(stages).explain('executionStats'));
      const plan = /"winningPlan":(.*?),"rejectedPlans"/.exec(explained)?.[1];
      expect(plan).toContain(`"indexName":"${index}_before"`);
      expect(plan).not.toContain('"stage":"SORT"');
      expect(explained).toMatch(/"totalKeysExamined":[12],/);
    }
  });

  it('is planned by the server as a scan of that index, without a sort', async () => {
    const { db } = await connectMongodb();
    const asked = (await Promise.all(questions.map(([, ask]) => askedBy(ask)))).flat();
    for (const collection of new Set(asked.map((query) => query.collection))) {
      await db.createCollection(collection.name);
      const indexes = [...indexesFor(collection)];
      if (indexes.length > 0) await db.collection(collection.name).createIndexes(indexes);
    }
    for (const { filter, options, collection } of asked) {
      const documents = db.collection<Stored>(collection.name);
      const found = await documents.find(filter, options).explain('queryPlanner');
      const plan = (found as { queryPlanner?: { winningPlan?: Plan } }).queryPlanner?.winningPlan;
      const stages = stagesOf(plan!);
      const named = new Set(stages.map(({ stage }) => stage));
      expect({ filter, isBad: named.has('COLLSCAN') || named.has('SORT') }).toEqual({
        filter,
        isBad: false,
      });
      const keys = stages.flatMap(({ keyPattern }) => (keyPattern === undefined ? [] : [keyPattern]));
      expect(keys).toEqual(stages.some(({ stage }) => stage === 'IDHACK') ? [] : [options.hint]);
    }
  });
});
