import { CommanderError } from 'commander';
import { codeOf, messageOf } from '../fault';
import { isProblemCode } from '../problems';
import type { Io } from './io';
import { notice, visible } from './output';

/** The exit code of a failure; that of success is 0. */
export const FAILED = 1;
/** The exit code of an invalid command line. */
export const WRONG_USAGE = 2;
/** The exit code if the event log was rolled back: starting again does not help, the operator must act. */
export const LOG_SET_BACK = 3;
/** The exit code if a rebuild differs from the live read models, which stay; and of a tenant that there is not. */
const REBUILD_DIFFERS = 4;
const NO_TENANT = 4;
/** The exit code if something contradicts what was signed. */
export const CONTRADICTED = 4;

/** Failures that scripts may want to tell from others, by their codes. */
export const OWN_EXIT_CODES: ReadonlyMap<string | undefined, number> = new Map([
  ['wrong_usage', WRONG_USAGE],
  ['log_set_back', LOG_SET_BACK],
  ['rebuild_differs', REBUILD_DIFFERS],
  ['tenant_not_found', NO_TENANT],
  ['evidence_contradicted', CONTRADICTED],
]);

const reportAsText = (io: Io, error: unknown): void => {
  // Already reported by the parser.
  if (error instanceof CommanderError) return;
  const code = codeOf(error);
  const sentence = messageOf(error).split('\n').map(visible).join('\n');
  notice(io, `tenant-ledger: ${sentence}${code === undefined || !isProblemCode(code) ? '' : ` [${code}]`}`);
  if (code === undefined) notice(io, (error as Error).stack ?? '');
};

/** The parser's message starts with `error: `. If a subcommand is missing, its only message is the help text. */
const errorInJson = (error: unknown) => {
  if (!(error instanceof CommanderError)) {
    const code = codeOf(error);
    const isKnown = code !== undefined && isProblemCode(code);
    return { code: isKnown ? code : 'internal_error', message: messageOf(error) };
  }
  const isMissing = error.code === 'commander.help';
  const missing = 'A subcommand is missing. Add --help to see which there are.';
  return { code: 'wrong_usage', message: isMissing ? missing : error.message.replace(/^error: /, '') };
};

/** Reports the failure of a command on stderr. */
export const reportFailure = (io: Io, isJson: boolean, error: unknown): void =>
  isJson ? notice(io, JSON.stringify({ error: errorInJson(error) })) : reportAsText(io, error);
