import { join } from 'node:path';
import { logs } from '../../projections/logs';
import { compose, type Reader } from '../../projections/projector';
import { sqliteReadModels } from '../../src/read-models/sqlite/sqlite-read-models';
import { iso, loggedOf, projectedInto } from '../projections/history';
import { freshFolder } from './folders';

export const TENANT = 'aaaaaaaa-0000-4000-8000-000000000001';
export const ROWS = 500;

/** One row per minute, alternating between two types and among five entities, each under both types. */
const eventsOf = (rows: number) =>
  loggedOf(
    Array.from({ length: rows }, (_, at) => ({
      tenantId: TENANT,
      type: at % 2 === 0 ? 'TokenRead' : 'CardRead',
      data: { entityId: `e${at % 5}` },
      recordedMs: Date.UTC(2026, 0, 1, 0, at + 1),
      metadata: { actor: { type: 'user', id: TENANT }, traceId: `trace-${at % 3}` },
    })),
  );

export const filledLog = async (
  rows = ROWS,
): Promise<{
  reader: Reader;
  path: string;
  close: () => Promise<void>;
}> => {
  const folder = freshFolder();
  const projector = compose([logs]);
  const { version, collections } = projector;
  const readModels = sqliteReadModels({ folder, version, collections });
  const set = await projectedInto(readModels, projector, eventsOf(rows));
  return { reader: set, path: join(folder, `set-${version}-${set.id}.db`), close: () => readModels.close() };
};

export const minute = (number: number): string => iso(Date.UTC(2026, 0, 1, 0, number));
