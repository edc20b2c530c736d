import { randomUUID } from 'node:crypto';
import type { Collection, Document, Query } from '../../projections/projector';
import { idOf, type Stored } from '../../src/read-models/mongodb/layout';
import {
  findIn,
  indexesFor,
  lastBefore,
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
    by_typed_entity: ['entity_id', 'entity_type', 'typed_entity_number'],
    by_trace: ['trace_id', 'number'],
  },
  numbered: { by_number: 'created_at', by_type: 'number', by_typed_entity: 'number' },
};

const LIMIT = 20;
const queries: readonly Query[] = [
  { limit: LIMIT },
  { from: 'k0100', limit: LIMIT },
  { from: 'k0100', upTo: 'k0105', limit: LIMIT },
  { index: 'by_number', limit: LIMIT },
  { index: 'by_number', from: 100, upTo: 110, limit: LIMIT },
  { index: 'by_type', limit: LIMIT },
  { index: 'by_type', equal: ['token'], limit: LIMIT },
  { index: 'by_type', equal: ['token'], from: 7, upTo: 12, limit: LIMIT },
  { index: 'by_type', equal: ['token', 7], limit: LIMIT },
  { index: 'by_typed_entity', equal: ['e1', 'token'], upTo: 9, limit: LIMIT },
  { index: 'by_trace', limit: LIMIT },
  { index: 'by_trace', equal: ['t1'], limit: LIMIT },
  { index: 'by_trace', equal: ['t1', 9], from: 'k', limit: LIMIT },
].flatMap((query) => [query, { ...query, descending: true }]);

const COUNT = 400;
const rowAt = (number: number): Document => ({
  number,
  type_number: number,
  typed_entity_number: number,
  entity_type: 'token',
  entity_id: 'e1',
  created_at: new Date(number * 60_000).toISOString(),
  ...(number % 3 === 0 ? { trace_id: 't1' } : {}),
});

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
    await rows.createIndexes(indexesFor(ROWS));
    const rowsOf = (tenantId: string) =>
      Array.from({ length: COUNT }, (_, at) => ({
        _id: idOf(tenantId, `k${String(at + 1).padStart(4, '0')}`),
        doc: rowAt(at + 1),
      }));
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

  it('finds the number of a value by one lookup', async () => {
    const ask = await filled();
    for (const [index, equal, value] of [
      ['by_number', [], new Date(300 * 60_000).toISOString()],
      ['by_type', ['token'], 300],
      ['by_typed_entity', ['e1', 'token'], 300],
    ] as const) {
      const { number, query } = lastBefore(ROWS, TENANT, { index, equal }, value);
      const { found, queryPlanner, executionStats } = await ask(query);
      expect(found.map(({ doc }) => doc[number])).toEqual([299]);
      expect(JSON.stringify(queryPlanner.winningPlan)).toContain(`"indexName":"${index}_before"`);
      expect(stagesOf(queryPlanner.winningPlan).map(({ stage }) => stage)).not.toContain('SORT');
      expect(executionStats.totalKeysExamined).toBeLessThanOrEqual(2);
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
