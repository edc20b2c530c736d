import { monotonicMs } from '../async/clock';

/** Work ends with its deadline, and with its caller. */
export interface Until {
  /** On the monotonic clock. */
  readonly deadline: number;
  /** The caller has disconnected. */
  readonly gone: AbortSignal;
}

interface Slots {
  taken: number;
  /** Those who wait, longest first. */
  readonly waiting: Set<() => void>;
}

/** Lets each tenant have a number of things under way at a time. */
export const tenantSlots = (perTenant: number) => {
  const tenants = new Map<string, Slots>();

  const release = (tenantId: string, slots: Slots): void => {
    slots.taken -= 1;
    const [next] = slots.waiting;
    next?.();
    if (slots.taken === 0) tenants.delete(tenantId);
  };

  /** Waits in order for a slot. Call the returned function once, when it is free again. Undefined: there was none in time. */
  return (tenantId: string, { deadline, gone }: Until): Promise<(() => void) | undefined> => {
    const slots = tenants.get(tenantId) ?? { taken: 0, waiting: new Set() };
    tenants.set(tenantId, slots);
    const taken = (): (() => void) => {
      slots.taken += 1;
      return () => release(tenantId, slots);
    };
    if (slots.taken < perTenant) return Promise.resolve(taken());
    return new Promise((resolve) => {
      const stopWaiting = (): void => {
        clearTimeout(timer);
        slots.waiting.delete(begin);
        gone.removeEventListener('abort', giveUp);
      };
      const begin = (): void => {
        stopWaiting();
        resolve(taken());
      };
      const giveUp = (): void => {
        stopWaiting();
        resolve(undefined);
      };
      const timer = setTimeout(giveUp, Math.max(0, deadline - monotonicMs()));
      slots.waiting.add(begin);
      gone.addEventListener('abort', giveUp);
      if (gone.aborted) giveUp();
    });
  };
};
