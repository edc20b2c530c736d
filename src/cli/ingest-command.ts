import { createReadStream } from 'node:fs';
import type { Command } from 'commander';
import { hasLog } from '../../projections/logs';
import { isoNow } from '../clock';
import { codeOf, fault, messageOf } from '../fault';
import { ingest, type Ingested } from '../ingest/ingest';
import type { JsonOption } from './arguments';
import { BEHIND, sessionCommand, type OperatorSession } from './operator-session';
import { notice, printJson, printOne } from './output';
import { withProgress, type ProgressLine } from './progress';

/** Beyond this, refused lines are only counted. */
const MAX_SHOWN = 1_000;

/** The amount of a file that is read and appended at a time. */
const CHUNK_BYTES = 131_072;

interface Options extends JsonOption {
  readonly dryRun?: boolean;
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

const inputOf = (file: string): AsyncIterable<Buffer> => (file === '-' ? process.stdin : contentOf(file));

const progressIn = (line: ProgressLine) => {
  const began = Date.now();
  return ({ accepted, alreadyThere, refused }: Ingested): void => {
    const rate = Math.round((1_000 * (accepted + alreadyThere)) / Math.max(1, Date.now() - began));
    line.show(`${accepted} accepted, ${alreadyThere} already there, ${refused} refused, ${rate}/s`);
  };
};

const run = async (session: OperatorSession, file: string, options: Options): Promise<void> => {
  const { log, ledger, streams, projecting } = session.app;
  const errors: { line: number; reason: string }[] = [];
  const onRefused = (line: number, reason: string): void => {
    if (errors.length >= MAX_SHOWN) return;
    errors.push({ line, reason });
    notice(`line ${line}: ${reason}`);
  };
  await session.upToDate();
  if (options.dryRun !== true) await projecting.start();
  const parts = {
    log,
    ledger,
    streams,
    reached: projecting.reached,
    isShown: (tenantId: string, eventId: string) => hasLog(projecting.reader('logs'), tenantId, eventId),
    now: isoNow,
  };
  const { shown, accepted, alreadyThere, refused } = await withProgress('Ingesting:', (line) =>
    ingest(inputOf(file), parts, {
      dryRun: options.dryRun === true,
      onRefused,
      onProgress: progressIn(line),
    }),
  );
  if (refused > MAX_SHOWN) notice(`… and ${refused - MAX_SHOWN} more refused lines.`);
  if (!shown) notice(BEHIND);
  if (refused > 0) process.exitCode = 1;
  const totals = { accepted, already_there: alreadyThere, refused };
  if (options.json === true) printJson({ ...totals, errors });
  else printOne(totals, options);
};

export const ingestCommand = (): Command =>
  sessionCommand('ingest', 'ingest facts that other services report: NDJSON, one JSON object per line', run)
    .argument('[file]', 'the file, or - for stdin', '-')
    .option('--dry-run', 'only report what would be refused')
    .addHelpText(
      'after',
      `
A line: {"id": UUID, "tenant_id": UUID, "type": "TokenCreated", "data": {"entityId": "tok_1", "occurredAt": TIME}}
Optional members: version, actor {type, id}, trace_id. Types and data: docs/events.md.
Valid lines are accepted even if others are refused; then the exit code is 1. The same file may be ingested again: an
id counts once, and is reported as already there.`,
    );
