import { userInfo } from 'node:os';
import { isoNow, monotonicMs } from '../async/clock';
import type { Actor } from '../domain/events';
import type { TenantRequest } from '../ledger/ledger';

const osUser = (): string => {
  try {
    return userInfo().username;
  } catch {
    return 'unknown';
  }
};

export const operatorActor = (id: string): Actor => ({ type: 'user', id, osUser: osUser() });

/** A request of the operator, to be done within this time. */
export const operatorRequest = (tenantId: string, actor: string, withinMs: number): TenantRequest => ({
  tenantId,
  caller: { kind: 'operator', actor: operatorActor(actor) },
  at: isoNow(),
  deadline: monotonicMs() + withinMs,
});
