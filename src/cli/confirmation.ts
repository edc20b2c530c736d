import { createInterface } from 'node:readline/promises';
import { fault } from '../fault';
import type { YesOption } from './arguments';
import { notice } from './output';

/** Asks on a terminal. Ctrl-C and the end of the input are a no. */
const ask = async (question: string): Promise<boolean> => {
  if (!process.stdin.isTTY) return false;
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  const closed = new Promise<string>((resolve) => asking.once('close', () => resolve('')));
  const answer = await Promise.race([asking.question(`${question} [y/N] `), closed]);
  asking.close();
  return /^y(es)?$/i.test(answer.trim());
};

/** False: the answer was no, which is said, and the exit code is 1. */
export const confirmed = async (question: string, otherwise: string): Promise<boolean> => {
  if (await ask(question)) return true;
  notice(otherwise);
  process.exitCode = 1;
  return false;
};

/** For what cannot be undone: without a terminal only `--yes` will do. */
export const confirmedForGood = async (
  what: string,
  { yes }: YesOption,
  otherwise: string,
): Promise<boolean> => {
  if (yes === true) return true;
  if (!process.stdin.isTTY)
    throw fault(
      'not_confirmed',
      `stdin is not a terminal, so nobody can confirm that you want to ${what}. Give --yes to do it without confirmation.`,
    );
  return confirmed(`Really ${what}? This cannot be undone.`, otherwise);
};

/** It may delete more than it names. */
export const confirmedDeletion = (what: string, options: YesOption): Promise<boolean> =>
  confirmedForGood(what, options, 'Nothing was deleted.');
