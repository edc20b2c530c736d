import { Command, CommanderError, type Option, type OutputConfiguration } from 'commander';
import { programVersion } from '../configuration';
import { masked } from '../domain/texts';
import { codeOf, fault } from '../fault';
import { applicationCommands } from './application-commands';
import type { MakeCommand } from './arguments';
import { auditCommand } from './audit-command';
import { backupCommands } from './backup-commands';
import { configCommand } from './config-command';
import { demoCommand } from './demo-command';
import { doctorCommand } from './doctor-command';
import { evidenceCommands } from './evidence-commands';
import { explainCommand } from './explain-command';
import { FAILED, OWN_EXIT_CODES, reportFailure, WRONG_USAGE } from './failure';
import { ingestCommand } from './ingest-command';
import type { Io } from './io';
import { keyCommands } from './key-commands';
import { logCommands } from './log-commands';
import { projectionsCommands } from './projections-commands';
import { serveCommand } from './serve-command';
import { serviceCommands } from './service-commands';
import { statusCommand } from './status-command';
import { tenantCommands } from './tenant-commands';
import { usageCommand } from './usage-command';

/** New files and folders are readable by their owner only. */
const PRIVATE = 0o077;

/** The width of help that is not read on a terminal. */
const COLUMNS = 80;

/** In the order of the help. They load what they work with when they run, so that the help appears at once. */
const commands: readonly MakeCommand[] = [
  serveCommand,
  tenantCommands,
  applicationCommands,
  keyCommands,
  serviceCommands,
  auditCommand,
  evidenceCommands,
  usageCommand,
  ingestCommand,
  demoCommand,
  projectionsCommands,
  logCommands,
  backupCommands,
  statusCommand,
  doctorCommand,
  explainCommand,
  configCommand,
];

/** A failure in JSON is a single object, with nothing around it that a program would have to skip. */
const parserOutput = ({ stdout, stderr }: Io, isJson: boolean): OutputConfiguration => ({
  writeOut: (text) => void stdout.write(text),
  writeErr: (text) => {
    if (!isJson) stderr.write(masked(text));
  },
  getOutHelpWidth: () => stdout.columns ?? COLUMNS,
  getErrHelpWidth: () => stderr.columns ?? COLUMNS,
});

const programFor = (io: Io, isJson: boolean): Command => {
  const program = new Command('tenant-ledger')
    .description('Tenants, Applications, keys and their audit log, on an append-only event log.')
    .version(programVersion(), '--version')
    .helpOption('--help')
    .helpCommand(false)
    .configureOutput(parserOutput(io, isJson))
    // Options after a subcommand belong to it, even if its parent has options of the same name.
    .enablePositionalOptions()
    .showHelpAfterError('(add --help for help)');
  for (const makeCommand of commands) program.addCommand(makeCommand(io));
  return program;
};

interface Parser {
  readonly args: readonly string[];
  missingMandatoryOptionValue(option: Option): void;
  unknownOption(flag: string): void;
}

/** Where an option is missing because it is misspelt, names the one that was given, which the parser does not. */
const namingMisspelt = (parser: Parser): void => {
  const missing = parser.missingMandatoryOptionValue.bind(parser);
  parser.missingMandatoryOptionValue = (option) => {
    const unknown = parser.args.find((text) => /^--./.test(text));
    if (unknown !== undefined) parser.unknownOption(unknown);
    missing(option);
  };
};

/** Makes every command throw instead of exiting, so that `main` alone sets the exit code. */
const throwing = (command: Command): Command => {
  command.exitOverride();
  namingMisspelt(command as unknown as Parser);
  for (const sub of command.commands) throwing(sub.copyInheritedSettings(command));
  return command;
};

const exitCodeOf = (error: unknown): number => {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : WRONG_USAGE;
  return OWN_EXIT_CODES.get(codeOf(error)) ?? FAILED;
};

/** A reader may close the pipe early (`| head -1`). That is not a failure: the command still runs to its end. */
const tolerateClosedStdout = (io: Io, isJson: boolean): void => {
  io.stdout.once('error', (error: NodeJS.ErrnoException) => {
    io.stdout.on('error', () => undefined);
    if (error.code === 'EPIPE') return;
    reportFailure(io, isJson, fault('output_failed', `The output cannot be written: ${error.message}.`));
    io.exitCode = FAILED;
  });
};

/** Runs one command line. The exit code is in `io.exitCode` then; `serve` calls `io.exit` once it has stopped. */
export const main = async (argv: readonly string[], io: Io): Promise<void> => {
  const isJson = argv.includes('--json');
  io.umask(PRIVATE);
  tolerateClosedStdout(io, isJson);
  try {
    await throwing(programFor(io, isJson)).parseAsync(argv);
  } catch (error) {
    const code = exitCodeOf(error);
    if (code === 0) return;
    reportFailure(io, isJson, error);
    io.exitCode = code;
  }
};

if (require.main === module) void main(process.argv, process);
