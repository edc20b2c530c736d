import { Readable } from 'node:stream';
import { isoNow, monotonicMs } from '../../async/clock';
import type { EndReason } from '../../audit/event-stream';
import { holds } from '../../domain/authority';
import { codeOf } from '../../fault';
import { TIMES } from '../../times';
import type { ApiDependencies } from '../context';
import type { RouteRequest } from '../route';

/**
 * Pulls the next chunk when there is room for it. Not `Readable.from`, which waits for the next chunk before it closes:
 * for a quiet tenant that may never come. A client that reads nothing for a minute is disconnected by the server.
 */
export const streamBody = (chunks: AsyncGenerator<string>, onClosed: () => void): Readable => {
  const pushNext = async (body: Readable): Promise<void> => {
    const { done, value } = await chunks.next();
    body.push(done === true ? null : value);
  };
  return new Readable({
    read() {
      pushNext(this).catch((error: Error) => this.destroy(error));
    },
    destroy(error, closed) {
      onClosed();
      // It may be waiting for room that will never be there: let it release what it has open.
      chunks.return(undefined).catch(() => undefined);
      closed(error);
    },
  });
};

/** A key may expire, be revoked or lose the permission while its stream is open. */
export const stillAllowed =
  ({ tenantId, caller, permission = '' }: RouteRequest, { ledger }: ApiDependencies) =>
  async (): Promise<EndReason | undefined> => {
    const key = { tenantId, digest: caller.digest, at: isoNow(), deadline: monotonicMs() + TIMES.noAnswerMs };
    try {
      const { application } = await ledger.identify(key, TIMES.keyAgeMs);
      return holds(application, permission) ? undefined : 'permission_missing';
    } catch (error) {
      if (codeOf(error) === 'key_refused') return 'key_refused';
      throw error;
    }
  };
