import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { MongoConnection } from '../../mongodb/connection';
import { TIMES } from '../../times';
import type { Lease } from '../read-models';
import { isWithin, leasesIn } from './layout';
import { isDuplicate } from './transactions';

/** One document for each version says who projects. */
export const leaseOn = (connection: MongoConnection, version: string, leaseMs = TIMES.leaseMs): Lease => {
  const leases = leasesIn(connection);
  const holder_id = randomUUID();
  const isAlive = isWithin('renewed_at', leaseMs);
  const taking = () => ({
    $set: { holder: `${hostname()} ${process.pid}`, holder_id },
    $currentDate: { renewed_at: true as const },
  });
  const hold = async (): Promise<boolean> => {
    const ownOrOver = { _id: version, $or: [{ holder_id }, { $nor: [isAlive] }] };
    const { matchedCount } = await leases.updateOne(ownOrOver, taking());
    if (matchedCount === 1) return true;
    try {
      await leases.updateOne({ _id: version, holder_id }, taking(), { upsert: true });
      return true;
    } catch (error) {
      if (isDuplicate(error)) return false;
      throw error;
    }
  };
  return {
    hold: () => connection.run(hold()),
    release: async () => void (await connection.run(leases.deleteOne({ _id: version, holder_id }))),
    holder: async () => (await connection.run(leases.findOne({ _id: version, ...isAlive })))?.holder,
  };
};
