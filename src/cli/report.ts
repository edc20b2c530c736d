import { CommanderError } from 'commander';
import { masked } from '../domain/key-like';
import { codeOf, messageOf } from '../fault';
import { isProblemCode } from '../problems';
import { say, visible } from './output';

/** How a command says on stderr what went wrong. */
export interface Report {
  /** What the parser of the arguments writes, in pieces. */
  usage(text: string): void;
  failure(error: unknown): void;
}

const asText: Report = {
  usage: (text) => void process.stderr.write(masked(text)),
  failure: (error) => {
    // The parser has said it already.
    if (error instanceof CommanderError) return;
    const code = codeOf(error);
    const sentence = messageOf(error).split('\n').map(visible).join('\n');
    say(`tenant-ledger: ${sentence}${code === undefined || !isProblemCode(code) ? '' : ` [${code}]`}`);
    if (code === undefined) say((error as Error).stack ?? '');
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

/** One object and nothing else that would have to be told from it. */
const asJson: Report = {
  usage: () => undefined,
  failure: (error) =>
    say(JSON.stringify({ error: { code: codeInJson(error), message: messageInJson(error) } })),
};

export const reportIn = (form: 'text' | 'json'): Report => (form === 'json' ? asJson : asText);
