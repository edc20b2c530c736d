import { Command, CommanderError, type OutputConfiguration } from 'commander';
import { codeOf, fault } from '../fault';
import { programVersion } from '../version';
import { FAILED, failureReport, OWN_EXIT_CODES, WRONG_USAGE, type FailureReport } from './failure';
import type { Io } from './io';

/** New files and folders are readable by their owner only. */
const PRIVATE = 0o077;

/** The width of help that is not read on a terminal. */
const COLUMNS = 80;

/**
 * The file of each command, and the function in it that creates it. Loaded on demand: a command would spend most of its
 * time loading the others.
 */
const commands: ReadonlyMap<string, readonly [file: string, create: string]> = new Map([
  ['serve', ['./serve-command', 'serveCommand']],
  ['tenant', ['./tenant-commands', 'tenantCommands']],
  ['application', ['./application-commands', 'applicationCommands']],
  ['key', ['./key-commands', 'keyCommands']],
  ['audit', ['./audit/audit-command', 'auditCommand']],
  ['ingest', ['./ingest-command', 'ingestCommand']],
  ['demo', ['./demo-command', 'demoCommand']],
  ['projections', ['./projections/projections-commands', 'projectionsCommands']],
  ['log', ['./log-commands', 'logCommands']],
  ['backup', ['./backup-commands', 'backupCommands']],
  ['status', ['./status-command', 'statusCommand']],
  ['doctor', ['./doctor-command', 'doctorCommand']],
  ['explain', ['./reference-commands', 'explainCommand']],
  ['config', ['./reference-commands', 'configCommand']],
]);

const load = (io: Io, [file, create]: readonly [string, string]): Command | undefined =>
  (require(file) as Readonly<Record<string, (io: Io) => Command>>)[create]?.(io);

/** Loads the named command, none for `--version`, otherwise all: for the help and for suggestions after a typo. */
const loadFor = (io: Io, args: readonly string[]): readonly Command[] => {
  if (args[0] === '--version') return [];
  const name = args.find((arg) => !arg.startsWith('-')) ?? '';
  const named = commands.get(name);
  const wanted = named === undefined ? [...commands.values()] : [named];
  return wanted.flatMap((each) => load(io, each) ?? []);
};

const parserOutput = ({ stdout, stderr }: Io, report: FailureReport): OutputConfiguration => ({
  writeOut: (text) => void stdout.write(text),
  writeErr: report.usage,
  getOutHelpWidth: () => stdout.columns ?? COLUMNS,
  getErrHelpWidth: () => stderr.columns ?? COLUMNS,
});

const programFor = (io: Io, args: readonly string[], report: FailureReport): Command => {
  const program = new Command('tenant-ledger')
    .description('Tenants, Applications, keys and their audit log, on an append-only event log.')
    .version(programVersion(), '--version')
    .helpOption('--help')
    .helpCommand(false)
    .configureOutput(parserOutput(io, report))
    // Options after a subcommand belong to it, even if its parent has options of the same name.
    .enablePositionalOptions()
    .showSuggestionAfterError()
    .showHelpAfterError('(add --help for help)');
  for (const command of loadFor(io, args)) program.addCommand(command);
  return program;
};

/** Makes every command throw instead of exiting, so that `main` alone sets the exit code. */
const throwing = (command: Command): Command => {
  command.exitOverride();
  for (const sub of command.commands) throwing(sub.copyInheritedSettings(command));
  return command;
};

const exitCodeOf = (error: unknown): number => {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : WRONG_USAGE;
  return OWN_EXIT_CODES.get(codeOf(error)) ?? FAILED;
};

/** A reader may close the pipe early (`| head -1`). That is not a failure: the command still runs to its end. */
const tolerateClosedStdout = (io: Io, report: FailureReport): void => {
  io.stdout.once('error', (error: NodeJS.ErrnoException) => {
    io.stdout.on('error', () => undefined);
    if (error.code === 'EPIPE') return;
    report.failure(fault('output_failed', `The output cannot be written: ${error.message}.`));
    io.exitCode = FAILED;
  });
};

/** Runs one command line. The exit code is in `io.exitCode` then; `serve` calls `io.exit` once it has stopped. */
export const main = async (argv: readonly string[], io: Io): Promise<void> => {
  const report = failureReport(io, argv.includes('--json') ? 'json' : 'text');
  io.umask(PRIVATE);
  tolerateClosedStdout(io, report);
  try {
    const program = programFor(io, argv.slice(2), report);
    await throwing(program).parseAsync(argv);
  } catch (error) {
    const code = exitCodeOf(error);
    if (code === 0) return;
    report.failure(error);
    io.exitCode = code;
  }
};

if (require.main === module) void main(process.argv, process);
