import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { MongoConnection } from '../../mongodb/connection';
import { TIMES } from '../../times';
import type { Lease } from '../read-models';
import { isWithin, leasesIn, type StoredLease } from './layout';
import { isDuplicate } from './transactions';

/** One document for each version says who projects. */
export const leaseOn = (connection: MongoConnection, version: string, leaseMs = TIMES.leaseMs): Lease => {
  const leases = leasesIn(connection);
  const holder_id = randomUUID();
  const alive = { _id: version, ...isWithin('renewed_at', leaseMs) };
  const taking = () => ({
    $set: { holder: `${hostname()} ${process.pid}`, holder_id },
    $currentDate: { renewed_at: true as const },
  });

  /** Does nothing if the lease has changed since it was read. */
  const take = async (former: StoredLease | null): Promise<boolean> => {
    const unchanged = former ?? { _id: version, holder_id };
    const taken = await leases.updateOne(unchanged, taking(), { upsert: former === null });
    return taken.matchedCount + taken.upsertedCount === 1;
  };
  const hold = async (): Promise<boolean> => {
    const renewed = await leases.updateOne({ _id: version, holder_id }, taking());
    if (renewed.matchedCount === 1) return true;
    // Read before it is found to be over: whoever takes it in between has it.
    const former = await leases.findOne({ _id: version });
    if ((await leases.findOne(alive)) !== null) return false;
    return take(former).catch((error: unknown) => {
      if (isDuplicate(error)) return false;
      throw error;
    });
  };
  return {
    hold: () => connection.run(hold()),
    release: async () => void (await connection.run(leases.deleteOne({ _id: version, holder_id }))),
    holder: async () => (await connection.run(leases.findOne(alive)))?.holder,
  };
};
