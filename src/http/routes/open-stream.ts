import { isoNow, monotonicMs } from '../../async/clock';
import type { EndReason } from '../../audit/event-stream';
import { holds } from '../../domain/authority';
import { codeOf } from '../../fault';
import type { Stores } from '../dependencies';
import { MAX_READ_AGE_MS } from '../handle';
import type { RouteRequest } from './route';

const RECHECK_MS = 1_000;

/** A key may expire, be revoked or lose the permission while its stream is open. */
export const stillAllowed =
  ({ tenantId, caller, permission = '' }: RouteRequest<unknown>, { ledger }: Stores) =>
  async (): Promise<EndReason | undefined> => {
    const key = { tenantId, digest: caller.digest, at: isoNow(), deadline: monotonicMs() + RECHECK_MS };
    try {
      const { application } = await ledger.identify(key, MAX_READ_AGE_MS);
      return holds(application, permission) ? undefined : 'permission_missing';
    } catch (error) {
      if (codeOf(error) === 'key_refused') return 'key_refused';
      throw error;
    }
  };

/** A stream that cannot be started leaves its slot to others. */
export const orRelease = <T>(start: () => T, release: () => void): T => {
  try {
    return start();
  } catch (error) {
    release();
    throw error;
  }
};
