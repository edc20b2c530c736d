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

type KeyCommand = 'key find' | 'key revoke' | 'service key revoke';

const onStdin = (command: KeyCommand): string =>
  `Pass the key on stdin, for example: tenant-ledger ${command} < FILE`;

const BY_ID: Readonly<Record<KeyCommand, string>> = {
  'key find': '',
  'key revoke': ' Or name the key by its id: tenant-ledger key revoke KEY_ID --tenant TENANT_ID.',
  'service key revoke': ' Or name the key by its id: tenant-ledger service key revoke KEY_ID.',
};

const incomplete = (form: string, other: string, command: KeyCommand): string =>
  `On stdin is no complete key: a key ${form} and ends with a checksum. That of ${other} is for: ${command}.`;

const INCOMPLETE = {
  tenant: incomplete('begins with key_, has 59 characters', 'a service', 'service key revoke'),
  service: incomplete('of a service begins with svc_, has 37 characters', 'an Application', 'key revoke'),
};

const NOT_AS_ARGUMENT = 'not as an argument, which ends up in the shell history.';

const noArgument = (): never => {
  throw new InvalidArgumentError('There are no arguments here.');
};

/** A parser of arguments that refuses a key, and takes what the command accepts instead. */
export const notTheKey =
  (command: KeyCommand, accept: (text: string) => string = noArgument) =>
  (text: string): string => {
    if (!/^(?:key|svc)_/.test(text)) return accept(text);
    throw new InvalidArgumentError(`${onStdin(command)}, ${NOT_AS_ARGUMENT}`);
  };

/**
 * Reads a key from stdin, never from the arguments, which end up in the shell history and are visible to every user of
 * the machine. There may be text around it. The key itself does not leave this file.
 */
const keyOnStdin = async (io: Io, command: KeyCommand, kind: 'tenant' | 'service'): Promise<string> => {
  if (io.stdin.isTTY === true) notice(io, 'Paste the key and press Enter, then Ctrl-D:');
  let text = '';
  for await (const chunk of io.stdin) {
    text += String(chunk);
    if (text.length > MAX_BYTES) break;
  }
  if (text.trim() === '') throw fault('wrong_usage', `stdin is empty. ${onStdin(command)}.${BY_ID[command]}`);
  const [key = '', ...others] = keysIn(text, kind);
  if (others.length > 0)
    throw fault('wrong_usage', `There are ${others.length + 1} keys on stdin. Pass one at a time.`);
  return key;
};

export const readKey = async (io: Io, command: 'key find' | 'key revoke'): Promise<GivenKey> => {
  const key = await keyOnStdin(io, command, 'tenant');
  const tenantId = tenantOfKey(key);
  if (tenantId === undefined) throw fault('wrong_usage', INCOMPLETE.tenant);
  return { tenantId, digest: digestOf(key) };
};

export const readServiceKey = async (io: Io, command: 'service key revoke'): Promise<string> => {
  const key = await keyOnStdin(io, command, 'service');
  if (key === '') throw fault('wrong_usage', INCOMPLETE.service);
  return digestOf(key);
};
