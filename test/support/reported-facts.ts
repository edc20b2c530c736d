import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { openForWriting } from '../../src/sqlite/database';

/** A reported fact as a test writes it down. */
export interface Fact {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly id?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** What the clock of the log said. Left out: now. */
  readonly recordedAt?: string;
}

export const fact = (type: string, entityId: string, more: Omit<Partial<Fact>, 'type'> = {}): Fact => ({
  type,
  ...more,
  data: { entityId, ...more.data },
});

/**
 * Puts facts into the log of a folder with any clock, behind the back of whoever else uses it: as another service would
 * that appends to the log directly. Gives their ids.
 */
export const reportFacts = (folder: string, tenantId: string, facts: readonly Fact[]): readonly string[] => {
  const db = openForWriting(join(folder, 'events.db'), 'FULL');
  const stream = `activity-${tenantId}`;
  const insert = db.prepare(
    `INSERT INTO events (stream, revision, id, type, data, metadata, recorded_at)
     SELECT ?, COALESCE(MAX(revision), -1) + 1, ?, ?, ?, ?, ? FROM events WHERE stream = ?`,
  );
  try {
    db.exec('BEGIN IMMEDIATE');
    const ids = facts.map(({ type, data, id = randomUUID(), metadata = {}, recordedAt }) => {
      const ms = recordedAt === undefined ? Date.now() : Date.parse(recordedAt);
      insert.run(stream, id, type, JSON.stringify(data), JSON.stringify(metadata), ms, stream);
      return id;
    });
    db.exec('COMMIT');
    return ids;
  } finally {
    db.close();
  }
};
