import { fault } from '../fault';

/** Limits open event streams, since each uses memory and wakes up for every event of its tenant. */
const MAX_STREAMS = 500;
export const MAX_STREAMS_PER_TENANT = 20;

const RETRY_AFTER_SECONDS = 10;

const refused = (owner: string, max: number) =>
  fault('too_many_streams', `${owner} has ${max} streams of events open, and cannot have more.`, {
    retryAfter: RETRY_AFTER_SECONDS,
  });

/** Counts a stream, or throws `too_many_streams`. Call the returned function once, when the stream has ended. */
export const openStreams = () => {
  const perTenant = new Map<string, number>();
  let total = 0;
  return (tenantId: string): (() => void) => {
    const count = perTenant.get(tenantId) ?? 0;
    if (count >= MAX_STREAMS_PER_TENANT) throw refused('This Tenant', MAX_STREAMS_PER_TENANT);
    if (total >= MAX_STREAMS) throw refused('This instance', MAX_STREAMS);
    perTenant.set(tenantId, count + 1);
    total += 1;
    return () => {
      total -= 1;
      const remaining = (perTenant.get(tenantId) ?? 1) - 1;
      if (remaining === 0) perTenant.delete(tenantId);
      else perTenant.set(tenantId, remaining);
    };
  };
};
