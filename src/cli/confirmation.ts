import { createInterface } from 'node:readline/promises';
import { fault } from '../fault';
import type { YesOption } from './arguments';
import type { Io } from './io';
import { notice } from './output';

/** Asks on a TTY. Ctrl-C and the end of the input mean no. */
const ask = async ({ stdin, stderr }: Io, question: string): Promise<boolean> => {
  const prompt = createInterface({ input: stdin, output: stderr });
  // Otherwise this library would send the signal to the process, and leave the terminal as it is then.
  prompt.on('SIGTSTP', () => undefined);
  const closed = new Promise<string>((resolve) => prompt.once('close', () => resolve('')));
  const answer = await Promise.race([prompt.question(`${question} [y/N] `), closed]);
  prompt.close();
  return /^y(es)?$/i.test(answer.trim());
};

/**
 * For actions that cannot be undone. Without a TTY, `--yes` is required. False: the answer was no. Prints `otherwise` then,
 * and sets the exit code to 1.
 */
export const confirmedIrreversible = async (
  io: Io,
  what: string,
  { yes }: YesOption,
  otherwise = 'Nothing was deleted.',
): Promise<boolean> => {
  if (yes === true) return true;
  if (io.stdin.isTTY !== true)
    throw fault(
      'not_confirmed',
      `stdin is not a terminal, so nobody can confirm that you want to ${what}. Give --yes to do it without confirmation.`,
    );
  if (await ask(io, `Really ${what}? This cannot be undone.`)) return true;
  notice(io, otherwise);
  io.exitCode = 1;
  return false;
};
