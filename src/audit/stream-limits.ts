import { fault } from '../fault';

/** Each open stream holds some memory, and one that follows wakes up for every event of its tenant. */
const MAX_STREAMS = 500;
const PER_TENANT = {
  export: { max: 4, what: 'exports under way' },
  follow: { max: 20, what: 'followed streams of events open' },
};

export type StreamUse = keyof typeof PER_TENANT;

const RETRY_AFTER_SECONDS = 10;

const refused = (reason: string) =>
  fault('too_many_streams', `${reason}, and cannot have more.`, { retryAfter: RETRY_AFTER_SECONDS });

export const streamLimits = () => {
  const open = new Map<string, number>();
  let total = 0;
  /** Counts a stream, or throws `too_many_streams`. Call the returned function once, when the stream has ended. */
  return (tenantId: string, use: StreamUse): (() => void) => {
    const { max, what } = PER_TENANT[use];
    const name = `${use} ${tenantId}`;
    const count = open.get(name) ?? 0;
    if (count >= max) throw refused(`This Tenant has ${max} ${what}`);
    if (total >= MAX_STREAMS) throw refused(`This instance has ${MAX_STREAMS} streams of events open`);
    open.set(name, count + 1);
    total += 1;
    return () => {
      total -= 1;
      const remaining = (open.get(name) ?? 1) - 1;
      if (remaining === 0) open.delete(name);
      else open.set(name, remaining);
    };
  };
};
