import { randomUUID } from 'node:crypto';
import { logs } from '../../projections/logs';
import { openGenerationWriter } from '../../src/read-models/sqlite/generation-writer';
import { sqliteGeneration } from '../../src/read-models/sqlite/sqlite-generation';

export const TENANT = randomUUID();
export const ROWS = 500;

/** A tenant's log as the projection leaves it, filled by hand: 500 rows, of two types and ten entities. */
const fill = (path: string): void => {
  const writer = openGenerationWriter(path, logs.collections, 'log', false);
  const write = (
    collection: string,
    key: string,
    document: object,
    fields: readonly (string | number)[],
  ) => ({
    collection,
    areNew: false,
    flat: [TENANT, key, JSON.stringify(document), ...fields],
  });
  const rows = Array.from({ length: ROWS }, (_, at) => {
    const [number, type_number] = [at + 1, Math.floor(at / 2) + 1];
    const [entity_type, entity_id] = [at % 2 === 0 ? 'token' : 'card', `e${at % 10}`];
    const created_at = new Date(Date.UTC(2026, 0, 1, 0, number)).toISOString();
    const position = String(number).padStart(16, '0');
    const row = { number, type_number, entity_type, entity_id, created_at, position };
    return write('rows', randomUUID(), row, [number, entity_type, type_number, entity_id]);
  });
  const heads = [
    write('heads', 'tenant', { count: ROWS }, []),
    write('types', 'token', { entity_type: 'token', count: ROWS / 2 }, []),
    write('types', 'card', { entity_type: 'card', count: ROWS / 2 }, []),
  ];
  const writes = { tenants: [TENANT], collections: [...rows, ...heads] };
  writer.commit(0, { position: '1', eventId: '1' }, writes, false);
  writer.close();
};

/** That log as a process reads it. */
export const filledLog = (path: string) => {
  fill(path);
  const id = { projection: 'logs', version: 1, generation: 1 };
  return sqliteGeneration(path, id, logs.collections, false, () =>
    Promise.reject(new Error('Nothing is written here.')),
  );
};
