import { CommanderError } from 'commander';
import { masked } from '../domain/key-like';
import { codeOf, messageOf } from '../fault';
import { isProblemCode } from '../problems';
import { notice, visible } from './output';

/** How a command reports on stderr what went wrong. */
export interface FailureReport {
  /** What the parser of the command line writes, in pieces. */
  usage(text: string): void;
  failure(error: unknown): void;
}

const asText: FailureReport = {
  usage: (text) => void process.stderr.write(masked(text)),
  failure: (error) => {
    // The parser has reported it already.
    if (error instanceof CommanderError) return;
    const code = codeOf(error);
    const sentence = messageOf(error).split('\n').map(visible).join('\n');
    notice(`tenant-ledger: ${sentence}${code === undefined || !isProblemCode(code) ? '' : ` [${code}]`}`);
    if (code === undefined) notice((error as Error).stack ?? '');
  },
};

const codeInJson = (error: unknown): string => {
  if (error instanceof CommanderError) return 'wrong_usage';
  const code = codeOf(error);
  return code === undefined || !isProblemCode(code) ? 'internal_error' : code;
};

/** The parser's own message begins with `error: `; without a subcommand it has none but the help. */
const messageInJson = (error: unknown): string => {
  if (!(error instanceof CommanderError)) return messageOf(error);
  if (error.code === 'commander.help') return 'A subcommand is missing. Add --help to see which there are.';
  return error.message.replace(/^error: /, '');
};

/** One object and nothing else that a program would have to skip. */
const asJson: FailureReport = {
  usage: () => undefined,
  failure: (error) =>
    notice(JSON.stringify({ error: { code: codeInJson(error), message: messageInJson(error) } })),
};

export const failureReport = (format: 'text' | 'json'): FailureReport =>
  format === 'json' ? asJson : asText;
