import type { Idempotency, Recorded, TenantEvent } from '../domain/events';
import type { LedgerLog } from '../event-log/ledger-log';
import { tenantEventOf } from './fold';
import type { KnownTenant } from './folds';
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

interface RepeatableRequest {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly request: Pick<Idempotency, 'scope' | 'key'> | undefined;
}

/** The events of one request are adjacent in the stream. */
const eventsOf = async (
  { log, streams }: LedgerLog,
  { tenantId, applicationId, request }: RepeatableRequest,
  revision: number,
): Promise<readonly Recorded<TenantEvent>[]> => {
  const events: Recorded<TenantEvent>[] = [];
  for await (const batch of log.readStream(streams.tenant(tenantId), revision - 1))
    for (const logged of batch) {
      const event = tenantEventOf(logged, revision + events.length - 1, tenantId, streams);
      const { actor, idempotency } = event;
      const isCaused =
        actor?.id === applicationId &&
        idempotency?.key === request?.key &&
        idempotency?.scope === request?.scope;
      if (!isCaused) return events;
      events.push(event);
    }
  return events;
};

/** The same request, if it was answered before and is still remembered. It may be ahead of the fold. */
export const earlierRequest = async (
  ledgerLog: LedgerLog,
  { requests }: KnownTenant,
  repeatable: RepeatableRequest,
): Promise<EarlierRequest | undefined> => {
  const { applicationId, request } = repeatable;
  if (request === undefined) return undefined;
  for (const revision of requests.find(requestKey(applicationId, request))) {
    const events = await eventsOf(ledgerLog, repeatable, revision);
    const [first] = events;
    if (first?.idempotency !== undefined)
      return { hash: first.idempotency.hash, keyId: first.keyId, revision, events };
  }
  return undefined;
};
