import { randomUUID } from 'node:crypto';
import type { Collection, Document, Query } from '../../projections/projector';
import { lineText, storingIn, type Stored } from '../../src/read-models/mongodb/layout';
import {
  endsOf,
  findAt,
  findIn,
  indexesFor,
  PARKED_INDEX,
  parkedAfter,
  scanFrom,
  type MongoQuery,
} from '../../src/read-models/mongodb/queries';
import { connectMongodb } from '../support/mongodb-under-test';
import { describeMongodb } from '../support/mongodb/databases';

const TENANT = randomUUID();

/** Indexes of every kind: numbered or not, with one or several fields, on a field that not all documents have. */
const ROWS: Collection = {
  name: 'rows',
  indexes: {
    by_number: ['number'],
    by_type: ['entity_type', 'type_number'],
    by_typed_entity: ['entity_id', 'entity_type', 'typed_id_number'],
    by_trace: ['trace_id', 'number'],
  },
  numbered: { by_number: 'created_at', by_type: 'number', by_typed_entity: 'number' },
};
const PROGRESS_ROWS: Collection = { name: 'progress', indexes: {} };

const LIMIT = 20;
const queries: readonly Query[] = [
  { limit: LIMIT },
  { from: 'k0100', limit: LIMIT },
  { from: 'k0100', upTo: 'k0105', limit: LIMIT },
  { index: 'by_number', limit: LIMIT },
  { index: 'by_number', from: 100, upTo: 110, limit: LIMIT },
  { index: 'by_type', equal: ['token'], limit: LIMIT },
  { index: 'by_type', equal: ['token'], from: 7, upTo: 12, limit: LIMIT },
  { index: 'by_typed_entity', equal: ['e1', 'token'], upTo: 9, limit: LIMIT },
  { index: 'by_trace', limit: LIMIT },
  { index: 'by_trace', equal: ['t1'], limit: LIMIT },
  { index: 'by_trace', equal: ['t1', 9], from: 'k', limit: LIMIT },
].flatMap((query) => [query, { ...query, descending: true }]);

const COUNT = 400;
const rowAt = (number: number): Document => ({
  number,
  type_number: number,
  typed_id_number: number,
  entity_type: 'token',
  entity_id: 'e1',
  created_at: new Date(number * 60_000).toISOString(),
  ...(number % 3 === 0 ? { trace_id: 't1' } : {}),
});

/** Ten lines for each document. */
const LINE_FIELDS = Array.from({ length: 10 }, (_, i) => `field_${i}`);
const LINES: Collection = {
  name: 'lines',
  indexes: Object.fromEntries(LINE_FIELDS.map((field) => [`by_${field}`, [field, 'number']])),
  numbered: Object.fromEntries(LINE_FIELDS.map((field) => [`by_${field}`, 'created_at'])),
};

/** As MongoDB reports it. */
interface Plan {
  readonly stage: string;
  readonly keyPattern?: Readonly<Record<string, number>>;
  readonly inputStage?: Plan;
}
interface Explained {
  readonly queryPlanner: { readonly winningPlan: Plan };
  readonly executionStats: {
    readonly nReturned: number;
    readonly totalDocsExamined: number;
    readonly totalKeysExamined: number;
  };
}

const stagesOf = (plan: Plan): readonly Plan[] => [
  plan,
  ...(plan.inputStage === undefined ? [] : stagesOf(plan.inputStage)),
];

describeMongodb('every query to MongoDB', () => {
  const filled = async () => {
    const { db } = await connectMongodb();
    const rows = db.collection<Stored>('rows');
    await rows.createIndexes([...indexesFor(ROWS, true), ...indexesFor(ROWS, false)]);
    const store = storingIn(ROWS);
    const rowsOf = (tenantId: string) =>
      Array.from({ length: COUNT }, (_, at) =>
        store(tenantId, `k${String(at + 1).padStart(4, '0')}`, rowAt(at + 1)),
      );
    await rows.insertMany([TENANT, randomUUID(), randomUUID()].flatMap(rowsOf));
    return async ({ filter, options }: MongoQuery) => {
      const explained = await rows.find(filter, options).explain('executionStats');
      return { found: await rows.find(filter, options).toArray(), ...(explained as unknown as Explained) };
    };
  };

  it('follows its index from the start and reads no more than it returns', async () => {
    const ask = await filled();
    const asked = [
      ...queries.map((query) => findIn(ROWS, TENANT, query)),
      scanFrom(LIMIT, undefined),
      scanFrom(LIMIT, { tenantId: TENANT }),
      scanFrom(LIMIT, { tenantId: TENANT, key: 'k0009' }),
      findAt(ROWS, TENANT, { index: 'by_type', equal: ['token'] }, [5, 6, 7]),
      findAt(ROWS, TENANT, { index: 'by_number', equal: [] }, [5, 6, 7]),
    ];
    for (const query of asked) {
      const { queryPlanner, executionStats } = await ask(query);
      const stages = stagesOf(queryPlanner.winningPlan);
      const { nReturned, totalDocsExamined, totalKeysExamined } = executionStats;
      const keys = stages.flatMap(({ keyPattern }) => (keyPattern === undefined ? [] : [keyPattern]));
      expect({
        filter: query.filter,
        keys,
        sorts: stages.some(({ stage }) => stage === 'SORT' || stage === 'COLLSCAN'),
        finds: nReturned > 0,
        isMore: totalDocsExamined > nReturned || totalKeysExamined > nReturned + 3,
      }).toEqual({
        filter: query.filter,
        keys: [query.options.hint],
        sorts: false,
        finds: true,
        isMore: false,
      });
    }
  });

  it('finds the ends of ten lines of each of 32 tenants with at most four keys for each', async () => {
    const { db } = await connectMongodb();
    const rows = db.collection<Stored>('lines');
    const numbered = Object.keys(LINES.indexes);
    await rows.createIndexes(indexesFor(LINES, true));
    const store = storingIn(LINES);
    const tenantIds = Array.from({ length: 32 }, () => randomUUID());
    const rowOf = (number: number): Document => ({
      number,
      created_at: String(number),
      ...Object.fromEntries(LINE_FIELDS.map((field, i) => [field, `${field} ${number % (i + 1)}`])),
    });
    const lengthOf = (i: number): number => (i === 0 ? 3_000 : 5 + i);
    await rows.insertMany(
      tenantIds.flatMap((tenantId, i) =>
        Array.from({ length: lengthOf(i) }, (_, at) => store(tenantId, `k${at}`, rowOf(at + 1))),
      ),
    );
    for (const index of numbered) {
      const field = LINE_FIELDS[numbered.indexOf(index)] as string;
      const equal = [`${field} 0`];
      const lines = tenantIds.map((tenantId) => lineText(tenantId, equal));
      const { pipeline, hint } = endsOf(LINES, { index, equal }, lines);
      const found = await rows.aggregate(pipeline, { hint }).toArray();
      const step = numbered.indexOf(index) + 1;
      const expected = tenantIds.map((_, i) => lengthOf(i) - (lengthOf(i) % step));
      const numbers = new Map(found.map((end) => [end['_id'] as string, end['number'] as number]));
      expect(lines.map((line) => numbers.get(line) ?? 0)).toEqual(expected);
      const explained = await rows.aggregate(pipeline, { hint }).explain('executionStats');
      const { $cursor } = (explained as { stages: [{ $cursor: Explained }] }).stages[0];
      const { winningPlan } = $cursor.queryPlanner;
      expect(stagesOf(winningPlan).map(({ stage }) => stage)).toEqual(['FETCH', 'DISTINCT_SCAN']);
      expect($cursor.executionStats.totalKeysExamined).toBeLessThanOrEqual(4 * lines.length);
    }
  });

  it('finds parked tenants without looking at the others', async () => {
    const { db } = await connectMongodb();
    const progress = db.collection<Stored>('progress');
    await progress.createIndexes([PARKED_INDEX]);
    const store = storingIn(PROGRESS_ROWS);
    const idAt = (i: number): string => `t${String(i).padStart(4, '0')}`;
    await progress.insertMany(
      Array.from({ length: 1_000 }, (_, i) =>
        store(idAt(i), 'tenant', { tenant: i, ...(i % 100 === 7 && { parked: { tenant_id: idAt(i) } }) }),
      ),
    );
    for (const [after, expected] of [
      ['', [7, 107, 207]],
      [idAt(207), [307, 407, 507]],
      [idAt(850), [907]],
    ] as const) {
      const { filter, options } = parkedAfter(3, after);
      const found = await progress.find(filter, options).toArray();
      expect(found.map(({ doc }) => doc['tenant'])).toEqual(expected);
      const explained = await progress.find(filter, options).explain('executionStats');
      const { executionStats } = explained as unknown as Explained;
      expect(executionStats.totalKeysExamined).toBeLessThanOrEqual(expected.length + 1);
    }
  });

  it('indexes only documents that have the first field', async () => {
    const ask = await filled();
    const query = findIn(ROWS, TENANT, { index: 'by_trace', limit: 1_000 });
    const { found, executionStats } = await ask(query);
    expect(found).toHaveLength(Math.floor(COUNT / 3));
    expect(executionStats.totalKeysExamined).toBeLessThanOrEqual(found.length + 1);
  });
});
