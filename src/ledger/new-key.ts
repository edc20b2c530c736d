import { randomUUID } from 'node:crypto';
import type { NewKey } from '../domain/application-keys';
import { digestOf, makeKey } from './api-key';

interface MadeKey {
  /** Shown to the caller once; the log stores only its digest. */
  readonly key: string;
  readonly input: NewKey;
}

export const newKey = (tenantId: string, more: Pick<NewKey, 'expiresAt' | 'name'> = {}): MadeKey => {
  const key = makeKey(tenantId);
  return { key, input: { keyId: randomUUID(), digest: digestOf(key), ...more } };
};
