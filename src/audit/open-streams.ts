import { fault } from '../fault';

/** How many streams of events may be open at once: each costs memory and wakes with every event of its tenant. */
const MAX_STREAMS = 500;
export const MAX_STREAMS_PER_TENANT = 20;

const RETRY_AFTER_SECONDS = 10;

export interface OpenStreams {
  /** Counts one more, or throws `too_many_streams`. Call the returned function once when the stream has ended. */
  open(tenantId: string): () => void;
}

const refused = (whose: string, max: number) =>
  fault('too_many_streams', `${whose} has ${max} streams of events open, and cannot have more.`, {
    retryAfter: RETRY_AFTER_SECONDS,
  });

export const openStreams = (): OpenStreams => {
  const perTenant = new Map<string, number>();
  let total = 0;
  return {
    open: (tenantId) => {
      const own = perTenant.get(tenantId) ?? 0;
      if (own >= MAX_STREAMS_PER_TENANT) throw refused('This Tenant', MAX_STREAMS_PER_TENANT);
      if (total >= MAX_STREAMS) throw refused('This instance', MAX_STREAMS);
      perTenant.set(tenantId, own + 1);
      total += 1;
      return () => {
        total -= 1;
        const left = (perTenant.get(tenantId) ?? 1) - 1;
        if (left === 0) perTenant.delete(tenantId);
        else perTenant.set(tenantId, left);
      };
    },
  };
};
