import type { Filter } from 'mongodb';
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { MongoConnection } from '../../mongodb/connection';
import { TIMES } from '../../times';
import type { Lease } from '../read-models';
import { leasesIn, type StoredLease } from './layout';
import type { Transactions } from './transactions';

const DUPLICATE_KEY = 11_000;

/** By the clock of the server. A time in the future was written before that clock was set back. */
const isAlive = (leaseMs: number): Filter<StoredLease> => ({
  $expr: { $lt: [{ $abs: { $subtract: ['$$NOW', '$renewed_at'] } }, leaseMs] },
});

/** One document for each version says who projects. */
export const leaseOn = (
  connection: MongoConnection,
  version: string,
  transactions: Transactions,
  leaseMs = TIMES.leaseMs,
): Lease => {
  const leases = leasesIn(connection);
  const holder_id = randomUUID();
  const taking = () => ({
    $set: { holder: `${hostname()} ${process.pid}`, holder_id, session: transactions.sessionId() },
    $currentDate: { renewed_at: true as const },
  });

  /** Does nothing if the lease has changed since it was read. */
  const take = async (former: StoredLease | null): Promise<boolean> => {
    const unchanged = former ?? { _id: version, holder_id };
    const taken = await leases.updateOne(unchanged, taking(), { upsert: former === null });
    return taken.matchedCount + taken.upsertedCount === 1;
  };
  /**
   * Ends the former holder's session, which frees the documents of its transaction. Does so before taking the lease, so
   * that the next one does it again if this process is killed in between.
   */
  const hold = async (): Promise<boolean> => {
    const renewed = await leases.updateOne({ _id: version, holder_id }, taking());
    if (renewed.matchedCount === 1) return true;
    // Read before it is found to be over: whoever takes it in between has it.
    const former = await leases.findOne({ _id: version });
    if ((await leases.findOne({ _id: version, ...isAlive(leaseMs) })) !== null) return false;
    if (former !== null) await connection.db.admin().command({ killSessions: [former.session] });
    return take(former).catch((error: unknown) => {
      if ((error as { code?: unknown }).code === DUPLICATE_KEY) return false;
      throw error;
    });
  };
  return {
    hold: () => connection.run(hold()),
    release: async () => void (await connection.run(leases.deleteOne({ _id: version, holder_id }))),
    holder: async () => (await connection.run(leases.findOne({ _id: version, ...isAlive(leaseMs) })))?.holder,
  };
};
