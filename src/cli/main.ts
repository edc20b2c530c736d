import { Command, CommanderError } from 'commander';
import { makePrivateFiles } from '../app/data-folder';
import { suspendGracefully } from '../app/suspending';
import { codeOf, fault } from '../fault';
import { programVersion } from '../version';
import { failureReport, type FailureReport } from './failure';

/** Exit codes: 0 is success, 1 refused or failed, 2 an invalid command line. */
const FAILED = 1;
const WRONG_USAGE = 2;

/** Loaded on demand: a command would spend most of its time loading the others. */
const commands: ReadonlyMap<string, () => Promise<Command>> = new Map([
  ['serve', async () => (await import('./serve-command.js')).serveCommand()],
  ['tenant', async () => (await import('./tenant-commands.js')).tenantCommands()],
  ['application', async () => (await import('./application-commands.js')).applicationCommands()],
  ['key', async () => (await import('./key-commands.js')).keyCommands()],
  ['logs', async () => (await import('./logs-command.js')).logsCommand()],
  ['audit', async () => (await import('./audit/audit-command.js')).auditCommand()],
  ['ingest', async () => (await import('./ingest-command.js')).ingestCommand()],
  ['permissions', async () => (await import('./reference-commands.js')).permissionsCommand()],
  ['limits', async () => (await import('./reference-commands.js')).limitsCommand()],
  ['projections', async () => (await import('./projections/projections-commands.js')).projectionsCommands()],
  ['log', async () => (await import('./log/log-commands.js')).logCommands()],
  ['backup', async () => (await import('./backup-commands.js')).backupCommands()],
  ['status', async () => (await import('./status-command.js')).statusCommand()],
  ['doctor', async () => (await import('./doctor-command.js')).doctorCommand()],
  ['explain', async () => (await import('./reference-commands.js')).explainCommand()],
  ['config', async () => (await import('./reference-commands.js')).configCommand()],
]);

/** Loads the named command, none for `--version`, otherwise all: for the help and for suggestions after a typo. */
const loadFor = async (args: readonly string[]): Promise<readonly Command[]> => {
  if (args[0] === '--version' || args[0] === '-V') return [];
  const name = args.find((arg) => !arg.startsWith('-') && arg !== 'help') ?? '';
  const named = commands.get(name);
  return Promise.all(named === undefined ? Array.from(commands.values(), (load) => load()) : [named()]);
};

const programFor = async (args: readonly string[], report: FailureReport): Promise<Command> => {
  const program = new Command('tenant-ledger')
    .description('Tenants, Applications, keys and their audit log, on an append-only event log.')
    .version(programVersion())
    .configureOutput({ writeErr: report.usage })
    // Options after a subcommand belong to it, even if its parent has options of the same name.
    .enablePositionalOptions()
    .showSuggestionAfterError()
    .showHelpAfterError('(add --help for help)');
  for (const command of await loadFor(args)) program.addCommand(command);
  return program;
};

/** Makes every command throw instead of exiting, so that `main` alone sets the exit code. */
const throwing = (command: Command): Command => {
  command.exitOverride();
  for (const sub of command.commands) throwing(sub.copyInheritedSettings(command));
  return command;
};

/** Failures that scripts may want to tell from others. */
const OWN_EXIT_CODES: ReadonlyMap<string | undefined, number> = new Map([['rebuild_differs', 3]]);

const exitCodeOf = (error: unknown): number => {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : WRONG_USAGE;
  return OWN_EXIT_CODES.get(codeOf(error)) ?? FAILED;
};

/** A reader may close the pipe early (`| head -1`). That is not a failure: the command still runs to its end. */
const tolerateClosedStdout = (report: FailureReport): void => {
  process.stdout.once('error', (error: NodeJS.ErrnoException) => {
    process.stdout.on('error', () => undefined);
    if (error.code === 'EPIPE') return;
    report.failure(fault('output_failed', `The output cannot be written: ${error.message}.`));
    process.exitCode = FAILED;
  });
};

export const main = async (argv: readonly string[]): Promise<void> => {
  const report = failureReport(argv.includes('--json') ? 'json' : 'text');
  makePrivateFiles();
  tolerateClosedStdout(report);
  suspendGracefully();
  try {
    const program = await programFor(argv.slice(2), report);
    await throwing(program).parseAsync(argv);
  } catch (error) {
    const code = exitCodeOf(error);
    if (code === 0) return;
    report.failure(error);
    process.exitCode = code;
  }
};

if (require.main === module) void main(process.argv);
