import { createReadStream } from 'node:fs';
import type { Command } from 'commander';
import { codeOf, fault, messageOf } from '../fault';
import { wholeNumber, type JsonOption } from './arguments';
import { ingestIn } from './ingesting';
import { BEHIND, sessionCommand, type OperatorSession } from './operator-session';
import { notice, printJson, printOne } from './output';
import type { Io } from './io';

/** Beyond this, refused lines are only counted. */
const MAX_SHOWN = 1_000;

/** The amount of a file that is read and appended at a time. */
const CHUNK_BYTES = 131_072;

interface Options extends JsonOption {
  readonly dryRun?: boolean;
  readonly wait: number;
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  EISDIR: 'is a folder',
  EACCES: 'may not be read by this user',
};

async function* contentOf(file: string): AsyncGenerator<Buffer> {
  try {
    yield* createReadStream(file, { highWaterMark: CHUNK_BYTES }) as AsyncIterable<Buffer>;
  } catch (error) {
    const why = reasons[codeOf(error) ?? ''] ?? `cannot be read (${messageOf(error)})`;
    throw fault('file_unreadable', `The file ${file} ${why}.`);
  }
}

const inputOf = ({ stdin }: Io, file: string): AsyncIterable<Buffer> =>
  file === '-' ? (stdin as AsyncIterable<Buffer>) : contentOf(file);

const run = async (session: OperatorSession, file: string, options: Options): Promise<void> => {
  const { io } = session;
  const errors: { line: number; reason: string }[] = [];
  const onRefused = (line: number, reason: string): void => {
    if (errors.length >= MAX_SHOWN) return;
    errors.push({ line, reason });
    notice(io, `line ${line}: ${reason}`);
  };
  const { shown, accepted, alreadyThere, refused, failure } = await ingestIn(session, inputOf(io, file), {
    isDryRun: options.dryRun === true,
    waitSeconds: options.wait,
    onRefused,
  });
  if (refused > MAX_SHOWN) notice(io, `… and ${refused - MAX_SHOWN} more refused lines.`);
  if (!shown && failure === undefined) notice(io, BEHIND);
  if (refused > 0) io.exitCode = 1;
  const totals = { accepted, already_there: alreadyThere, refused };
  if (options.json === true) printJson(io, { ...totals, errors });
  else printOne(io, totals, options);
  if (failure !== undefined) throw failure;
};

export const ingestCommand = (io: Io): Command =>
  sessionCommand(
    io,
    'ingest',
    'ingest facts that other services report: NDJSON, one JSON object per line',
    run,
  )
    .argument('[file]', 'the file, or - for stdin', '-')
    .option('--dry-run', 'only report what would be refused')
    .option('--wait <seconds>', 'how long to wait for a store that is away', wholeNumber, 60)
    .addHelpText(
      'after',
      `
A line: {"id": UUID, "tenant_id": UUID, "type": "TokenCreated", "data": {"entityId": "tok_1", "occurredAt": TIME}}
Optional members: version, actor {type, id}, trace_id. Types and data: docs/events.md.
Valid lines are accepted even if others are refused; then the exit code is 1. The same file may be ingested again: an
id counts once, and is reported as already there. The totals are printed even if it has to stop half way.`,
    );
