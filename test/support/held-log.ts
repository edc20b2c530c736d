import { DatabaseSync } from '@photostructure/sqlite';
import { join } from 'node:path';
import { openGate } from './gate';
import { logOf } from './log-under-test';

/** The event log of a folder, which can make the programs that use it wait. */
export interface HeldLog {
  /** The settings with which a program uses it. */
  readonly env: Readonly<Record<string, string>>;
  /** From now on appends block, until the returned function is called. */
  hold(): () => void;
  close(): Promise<void>;
}

const holdFile = (path: string) => (): (() => void) => {
  const db = new DatabaseSync(path, { timeout: 5_000 });
  db.exec('BEGIN IMMEDIATE');
  return () => {
    db.exec('ROLLBACK');
    db.close();
  };
};

/** SQLite is locked; an event store is behind a gate, and must be a single server reachable without TLS. */
export const heldLog = async (folder: string): Promise<HeldLog> => {
  const { EVENTSTORE_URL } = logOf(folder);
  if (EVENTSTORE_URL === undefined)
    return { env: {}, hold: holdFile(join(folder, 'events.db')), close: async () => undefined };
  const { hostname, port } = new URL(EVENTSTORE_URL);
  const gate = await openGate(() => Number(port), hostname);
  const hold = (): (() => void) => {
    gate.freeze();
    return gate.thaw;
  };
  const behind = EVENTSTORE_URL.replace(`${hostname}:${port}`, `127.0.0.1:${gate.port}`);
  return { env: { EVENTSTORE_URL: behind }, hold, close: gate.shut };
};
