import { InvalidArgumentError } from 'commander';
import { fault } from '../fault';
import { digestOf, keysIn, tenantOfKey } from '../ledger/api-key';
import type { Io } from './io';
import { notice } from './output';

/** Plenty for what a scanner reports about a key that it found. */
const MAX_BYTES = 1_048_576;

export interface GivenKey {
  readonly tenantId: string;
  readonly digest: string;
}

type KeyCommand = 'find' | 'revoke';

const onStdin = (command: KeyCommand): string =>
  `Pass the key on stdin, for example: tenant-ledger key ${command} < FILE`;

const EMPTY: Readonly<Record<KeyCommand, string>> = {
  find: `stdin is empty. ${onStdin('find')}.`,
  revoke: `stdin is empty. ${onStdin('revoke')}. Or name the key by its id: tenant-ledger key revoke KEY_ID --tenant TENANT_ID.`,
};

const INCOMPLETE =
  'What came on stdin contains no complete key: a key begins with key_, has 59 characters and ends with a checksum.';

const NOT_AS_ARGUMENT = 'not as an argument, which ends up in the shell history.';

const noArgument = (): never => {
  throw new InvalidArgumentError('There are no arguments here.');
};

/** A parser of arguments that refuses a key, and takes what the command accepts instead. */
export const notTheKey =
  (command: KeyCommand, accept: (text: string) => string = noArgument) =>
  (text: string): string => {
    if (!text.startsWith('key_')) return accept(text);
    throw new InvalidArgumentError(`${onStdin(command)}, ${NOT_AS_ARGUMENT}`);
  };

/**
 * Reads a key from stdin, never from the arguments, which end up in the shell history and are visible to every user of
 * the machine. There may be text around it. The key itself does not leave this function.
 */
export const readKey = async (io: Io, command: KeyCommand): Promise<GivenKey> => {
  if (io.stdin.isTTY === true) notice(io, 'Paste the key and press Enter, then Ctrl-D:');
  let text = '';
  for await (const chunk of io.stdin) {
    text += String(chunk);
    if (text.length > MAX_BYTES) break;
  }
  if (text.trim() === '') throw fault('wrong_usage', EMPTY[command]);
  const [key = '', ...others] = keysIn(text);
  if (others.length > 0)
    throw fault('wrong_usage', `There are ${others.length + 1} keys on stdin. Pass one at a time.`);
  const tenantId = tenantOfKey(key);
  if (tenantId === undefined) throw fault('wrong_usage', INCOMPLETE);
  return { tenantId, digest: digestOf(key) };
};
