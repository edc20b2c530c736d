import { createInterface } from 'node:readline/promises';
import { fault } from '../fault';
import { say } from './output';

/** Asks on a terminal. Ctrl-C and the end of the input are a no. */
export const confirmed = async (question: string): Promise<boolean> => {
  if (!process.stdin.isTTY) return false;
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  const closed = new Promise<string>((resolve) => asking.once('close', () => resolve('')));
  const answer = await Promise.race([asking.question(`${question} [y/N] `), closed]);
  asking.close();
  return /^y(es)?$/i.test(answer.trim());
};

/** For what cannot be undone and ends more than it names. False: it was answered with no. */
export const mayEnd = async (what: string, { yes }: { readonly yes?: boolean }): Promise<boolean> => {
  if (yes === true) return true;
  if (!process.stdin.isTTY)
    throw fault(
      'not_confirmed',
      `Without a terminal nobody can be asked whether to ${what}. Give --yes to do it without being asked.`,
    );
  if (await confirmed(`Really ${what}? This cannot be undone.`)) return true;
  say('Nothing was deleted.');
  process.exitCode = 1;
  return false;
};
