import { Command, CommanderError } from 'commander';
import { programVersion } from '../app';
import { masked } from '../domain/key-like';
import { codeOf, messageOf } from '../fault';
import { isProblemCode } from '../problems';
import { suspendInOrder } from '../suspending';
import { applicationCommands } from './application-commands';
import { ingestCommand } from './ingest-command';
import { keyCommands } from './key-commands';
import { logCommands } from './log-commands';
import { logsCommand } from './logs-command';
import { say, visible } from './output';
import { projectionsCommands } from './projections-commands';
import { configCommand, explainCommand, limitsCommand, permissionsCommand } from './reference-commands';
import { serveCommand } from './serve-command';
import { statusCommand } from './status-command';
import { tenantCommands } from './tenant-commands';

/** 0: done. 1: refused or failed. 2: the command was not used rightly. */
const FAILED = 1;
const WRONG_USAGE = 2;

const program = (): Command =>
  new Command('tenant-ledger')
    .description('Tenants, Applications, keys and their audit log, on an append-only event log.')
    .version(programVersion())
    .configureOutput({ writeErr: (text) => void process.stderr.write(masked(text)) })
    .showSuggestionAfterError()
    .showHelpAfterError('(add --help for help)')
    .addCommand(serveCommand())
    .addCommand(tenantCommands())
    .addCommand(applicationCommands())
    .addCommand(keyCommands())
    .addCommand(logsCommand())
    .addCommand(ingestCommand())
    .addCommand(permissionsCommand())
    .addCommand(limitsCommand())
    .addCommand(projectionsCommands())
    .addCommand(logCommands())
    .addCommand(statusCommand())
    .addCommand(explainCommand())
    .addCommand(configCommand());

/** Every command throws instead of ending the process, so that there is one place that ends it. */
const throwing = (command: Command): Command => {
  command.exitOverride();
  for (const sub of command.commands) throwing(sub.copyInheritedSettings(command));
  return command;
};

const exitCodeOf = (error: unknown): number => {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : WRONG_USAGE;
  return FAILED;
};

const explain = (error: unknown): void => {
  if (error instanceof CommanderError) return;
  const code = codeOf(error);
  const sentence = messageOf(error).split('\n').map(visible).join('\n');
  say(`tenant-ledger: ${sentence}${code === undefined || !isProblemCode(code) ? '' : ` [${code}]`}`);
  if (code === undefined) say((error as Error).stack ?? '');
};

/** Whoever read our output may stop reading (`| head -1`); that is no failure, and what was begun is finished. */
const outliveTheReader = (): void => {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
};

export const main = async (argv: readonly string[]): Promise<void> => {
  outliveTheReader();
  suspendInOrder();
  try {
    await throwing(program()).parseAsync(argv);
  } catch (error) {
    explain(error);
    process.exitCode = exitCodeOf(error);
  }
};

if (require.main === module) void main(process.argv);
