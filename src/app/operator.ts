import { userInfo } from 'node:os';
import { isoNow, monotonicMs } from '../async/clock';
import type { Actor } from '../domain/events';
import type { TenantRequest } from '../ledger/ledger';

const osUserName = (): string => {
  try {
    return userInfo().username;
  } catch {
    return 'unknown';
  }
};

/** Whoever may run the command can set `SUDO_USER` to anything. */
const osUser = (): string => {
  const name = osUserName();
  const { SUDO_USER: claimed = name } = process.env;
  return claimed === name ? name : `${name}; SUDO_USER claims ${claimed.slice(0, 64).toWellFormed()}`;
};

export const operatorActor = (id: string): Actor => ({ type: 'user', id, osUser: osUser() });

/** A request of the operator, to be done within this time. */
export const operatorRequest = (tenantId: string, actor: string, withinMs: number): TenantRequest => ({
  tenantId,
  caller: { kind: 'operator', actor: operatorActor(actor) },
  at: isoNow(),
  deadline: monotonicMs() + withinMs,
});
