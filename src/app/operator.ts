import { randomUUID } from 'node:crypto';
import { userInfo } from 'node:os';
import type { NewKey } from '../domain/applications';
import type { Caller } from '../domain/authority';
import type { Actor } from '../domain/events';
import { digestOf, makeKey } from '../ledger/api-key';

const osUser = (): string => {
  try {
    return userInfo().username;
  } catch {
    return 'unknown';
  }
};

export const operatorActor = (id: string): Actor => ({ type: 'user', id, osUser: osUser() });

export const operatorCaller = (id: string): Caller => ({ kind: 'operator', actor: operatorActor(id) });

/** A new key: shown once to whoever asked; the log keeps only its digest. */
export const newKey = (
  tenantId: string,
  expiresAt?: string,
): { readonly key: string; readonly input: NewKey } => {
  const key = makeKey(tenantId);
  const input = { keyId: randomUUID(), digest: digestOf(key), at: new Date().toISOString() };
  return { key, input: expiresAt === undefined ? input : { ...input, expiresAt } };
};
