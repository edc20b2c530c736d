import { Command, CommanderError } from 'commander';
import { programVersion } from '../version';
import { makePrivateFiles } from '../app/data-folder';
import { fault } from '../fault';
import { suspendInOrder } from '../app/suspending';
import { applicationCommands } from './application-commands';
import { ingestCommand } from './ingest-command';
import { keyCommands } from './key-commands';
import { logCommands } from './log-commands';
import { logsCommand } from './logs-command';
import { projectionsCommands } from './projections-commands';
import { configCommand, explainCommand, limitsCommand, permissionsCommand } from './reference-commands';
import { reportIn, type Report } from './report';
import { serveCommand } from './serve-command';
import { statusCommand } from './status-command';
import { tenantCommands } from './tenant-commands';

/** 0: done. 1: refused or failed. 2: the command line is not valid. */
const FAILED = 1;
const WRONG_USAGE = 2;

const program = (report: Report): Command =>
  new Command('tenant-ledger')
    .description('Tenants, Applications, keys and their audit log, on an append-only event log.')
    .version(programVersion())
    .configureOutput({ writeErr: report.usage })
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

/** Whoever read our output may stop reading (`| head -1`); that is no failure, and what was begun is finished. */
const outliveTheReader = (report: Report): void => {
  process.stdout.once('error', (error: NodeJS.ErrnoException) => {
    process.stdout.on('error', () => undefined);
    if (error.code === 'EPIPE') return;
    report.failure(fault('output_failed', `The output cannot be written: ${error.message}.`));
    process.exitCode = FAILED;
  });
};

export const main = async (argv: readonly string[]): Promise<void> => {
  const report = reportIn(argv.includes('--json') ? 'json' : 'text');
  makePrivateFiles();
  outliveTheReader(report);
  suspendInOrder();
  try {
    await throwing(program(report)).parseAsync(argv);
  } catch (error) {
    const code = exitCodeOf(error);
    if (code === 0) return;
    report.failure(error);
    process.exitCode = code;
  }
};

if (require.main === module) void main(process.argv);
