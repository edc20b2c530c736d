import type { Idempotency, Recorded, TenantEvent } from '../domain/events';
import type { LedgerLog } from '../event-log/ledger-log';
import { tenantEventOf, type KnownTenant } from './fold';
import { requestKey } from './remembered-requests';

/** A request that was answered before. */
export interface EarlierRequest {
  readonly hash: string;
  /** The API key of the request. */
  readonly keyId?: string | undefined;
  /** The revision of the first event that the request caused. */
  readonly revision: number;
  /** The events that it caused, from which the response is made again. */
  readonly events: readonly Recorded<TenantEvent>[];
}

export interface RepeatableRequest {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly request: Pick<Idempotency, 'scope' | 'key'> | undefined;
}

/** The revision at which the events of the same request may begin, if it is remembered. It may be ahead of the fold. */
export const rememberedRevision = (
  { requests }: KnownTenant,
  { applicationId, request }: RepeatableRequest,
): number | undefined =>
  request === undefined ? undefined : requests.find(requestKey(applicationId, request));

/** The same request, if its events do begin at the remembered revision. They are adjacent in the stream. */
export const earlierRequest = async (
  { log, streams }: LedgerLog,
  { tenantId, applicationId, request }: RepeatableRequest,
  revision: number,
): Promise<EarlierRequest | undefined> => {
  const events: Recorded<TenantEvent>[] = [];
  const found = (): EarlierRequest | undefined => {
    const [first] = events;
    if (first?.idempotency === undefined) return undefined;
    return { hash: first.idempotency.hash, keyId: first.keyId, revision, events };
  };
  for await (const batch of log.readStream(streams.tenant(tenantId), revision - 1))
    for (const logged of batch) {
      const event = tenantEventOf(logged, revision + events.length - 1, tenantId, streams);
      const { actor, idempotency } = event;
      const isCaused =
        actor?.id === applicationId &&
        idempotency?.key === request?.key &&
        idempotency?.scope === request?.scope;
      if (!isCaused) return found();
      events.push(event);
    }
  return found();
};
