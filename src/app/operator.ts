import { userInfo } from 'node:os';
import type { Caller } from '../domain/authority';
import type { Actor } from '../domain/events';

const osUser = (): string => {
  try {
    return userInfo().username;
  } catch {
    return 'unknown';
  }
};

export const operatorActor = (id: string): Actor => ({ type: 'user', id, osUser: osUser() });

export const operatorCaller = (id: string): Caller => ({ kind: 'operator', actor: operatorActor(id) });
