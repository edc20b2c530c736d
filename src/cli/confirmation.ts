import { createInterface } from 'node:readline/promises';
import { fault } from '../fault';
import type { YesOption } from './arguments';
import { notice } from './output';

/** Asks on a TTY. Ctrl-C and the end of the input mean no. */
const ask = async (question: string): Promise<boolean> => {
  if (!process.stdin.isTTY) return false;
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  const closed = new Promise<string>((resolve) => prompt.once('close', () => resolve('')));
  const answer = await Promise.race([prompt.question(`${question} [y/N] `), closed]);
  prompt.close();
  return /^y(es)?$/i.test(answer.trim());
};

/** False: the answer was no. Prints `otherwise` then, and sets the exit code to 1. */
export const confirmed = async (question: string, otherwise: string): Promise<boolean> => {
  if (await ask(question)) return true;
  notice(otherwise);
  process.exitCode = 1;
  return false;
};

/** For actions that cannot be undone. Without a TTY, `--yes` is required. */
export const confirmedIrreversible = async (
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

export const confirmedDeletion = (what: string, options: YesOption): Promise<boolean> =>
  confirmedIrreversible(what, options, 'Nothing was deleted.');
