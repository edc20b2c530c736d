import { fault } from '../fault';
import { digestOf, tenantOfKey } from '../ledger/api-key';
import { notice } from './output';
import type { Io } from './io';

/** Plenty for a key and the whitespace around it. */
const MAX_BYTES = 4_096;

export interface GivenKey {
  readonly tenantId: string;
  readonly digest: string;
}

/**
 * Reads a key from stdin, never from the arguments, which end up in the shell history and are visible to every user of
 * the machine. The key itself does not leave this function.
 */
export const readKey = async (io: Io): Promise<GivenKey> => {
  if (io.stdin.isTTY === true) notice(io, 'Paste the key and press Enter, then Ctrl-D:');
  let text = '';
  for await (const chunk of io.stdin) {
    text += String(chunk);
    if (text.length > MAX_BYTES) break;
  }
  const key = text.trim();
  const tenantId = tenantOfKey(key);
  if (tenantId === undefined)
    throw fault(
      'key_malformed',
      key === ''
        ? 'stdin is empty. Pass the key on stdin, for example: tenant-ledger key find < FILE.'
        : 'What came on stdin is not a complete key: a key begins with key_, has 59 characters and ends with a checksum.',
    );
  return { tenantId, digest: digestOf(key) };
};
