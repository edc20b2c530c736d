import type { OperatorEvent } from '../domain/events';
import { operatorEventOf } from './codec';
import type { LedgerLog } from './streams';

/** What the operator has set aside. It is read before projecting, rebuilding and verifying. */
export interface SetAside {
  /** Whether to skip this event. Its id may occur in other tenants, too. */
  readonly event: (tenantId: string, eventId: string) => boolean;
  /** Whether to apply this event although events before it are missing. */
  readonly gapBefore: (tenantId: string, eventId: string) => boolean;
}

/** An unreadable event of the operator sets nothing aside: the tenant visibly stays parked. */
export const readSetAside = async ({ log, streams }: LedgerLog): Promise<SetAside> => {
  const entries = new Set<string>();
  for await (const batch of log.readStream(streams.operator()))
    for (const logged of batch) {
      const event = operatorEventOf(logged);
      if (event !== undefined) entries.add(`${event.type} ${event.data.eventTenantId} ${event.data.eventId}`);
    }
  const has = (type: OperatorEvent['type']) => (tenantId: string, eventId: string) =>
    entries.size > 0 && entries.has(`${type} ${tenantId} ${eventId}`);
  return { event: has('EventSetAside'), gapBefore: has('GapAccepted') };
};
