import { monotonicMs } from '../../clock';
import type { MongoConnection } from '../../mongodb/connection';
import { controlsIn } from './control-document';
import { incarnationIn } from './layout';

const LOOK_MS = 15_000;
/** Running queries may still read a generation for a while after it was dropped. */
const UNREAD_MS = 20_000;

/**
 * Drops collections that belong to no generation, left by a drop, a crash or a late projector. Lists them before reading
 * the control documents, since a generation has its control document before its collections.
 */
export const sweepOnce = async (
  connection: MongoConnection,
  seen: Map<string, number>,
  unreadMs: number,
): Promise<void> => {
  const { db } = connection;
  const listed = await db.listCollections({}, { nameOnly: true }).toArray();
  const controls = await controlsIn(connection)
    .find({}, { projection: { incarnation: 1 } })
    .toArray();
  const lives = new Set(controls.map(({ incarnation }) => incarnation));
  const orphans = listed
    .map(({ name }) => name)
    .filter((name) => {
      const incarnation = incarnationIn(name);
      return incarnation !== undefined && !lives.has(incarnation);
    });
  for (const name of seen.keys()) if (!orphans.includes(name)) seen.delete(name);
  for (const name of orphans) {
    const since = seen.get(name) ?? monotonicMs();
    seen.set(name, since);
    if (monotonicMs() - since >= unreadMs) await db.dropCollection(name);
  }
};

/** Sweeps regularly, ignoring failures. Returns a function that stops it. */
export const sweeping = (connection: MongoConnection): (() => void) => {
  const seen = new Map<string, number>();
  const looking = setInterval(() => {
    sweepOnce(connection, seen, UNREAD_MS).catch(() => undefined);
  }, LOOK_MS).unref();
  return () => clearInterval(looking);
};
