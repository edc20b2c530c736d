import { beforeDeadline, threadMs } from '../async/clock';
import { singleFlightBy } from '../async/concurrency';
import type { LedgerLog } from '../event-log/streams';
import { fault } from '../fault';
import { TIMES } from '../times';
import { boundedCache, type Folds } from './folds';

const MAX_REMEMBERED = 10_000;

const late = () => fault('log_unavailable', 'The event log has not said whether there is such a tenant.');

/**
 * Whether a tenant exists, deleted or not. One that is unknown takes no turn from those that are read, and is remembered
 * for a while: anybody can make up keys and ids.
 */
export const tenantExistence = ({ log, streams }: LedgerLog, folds: Folds) => {
  const absent = boundedCache<number>(MAX_REMEMBERED);
  const look = async (tenantId: string, at: number): Promise<boolean> => {
    const head = await log.head();
    if (head !== undefined && (await log.revisionAt(streams.tenant(tenantId), head.position)) >= 0)
      return true;
    absent.put(tenantId, at);
    return false;
  };
  const looks = singleFlightBy(look);
  return async (tenantId: string, deadline: number): Promise<boolean> => {
    if (folds.lookedAt(tenantId) !== undefined) return true;
    const now = threadMs();
    if ((absent.get(tenantId) ?? -Infinity) >= now - TIMES.keyAgeMs) return false;
    return beforeDeadline(looks.since(tenantId, now), deadline, late);
  };
};
