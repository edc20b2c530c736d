import { Command } from 'commander';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { consistencyProof } from '../../projections/evidence';
import { parsedJson } from '../event-log/event-log';
import type { Difference, KeptCheckpoint } from '../evidence/check-export';
import * as note from '../evidence/note';
import { isConsistent } from '../evidence/tree';
import { codeOf, fault, messageOf } from '../fault';
import { commandGroup, option, uuid, type JsonOption, type TenantOptions } from './arguments';
import { CONTRADICTED, FAILED } from './failure';
import type { Io } from './io';
import { allTenants, knownTenant } from './lookups';
import { notice, printJson, printMany, printRecord } from './output';
import { sessionCommand, type OperatorSession } from './session';

/** What names the log of the key, and is not opened by it, contradicts it. Anything else is unusable. */
const opened = <T>(file: string, key: string, open: (text: string) => T): T => {
  let text = '';
  try {
    text = readFileSync(file, 'utf8');
    return open(text);
  } catch (error) {
    const isOfLog = text.includes(`${key.split('+')[0]}\n`);
    throw fault(isOfLog ? 'evidence_contradicted' : 'file_unreadable', `${file}: ${messageOf(error)}`);
  }
};

const keptIn = (file: string, key: string): KeptCheckpoint =>
  opened(file, key, (text) => ({ ...note.openCheckpoint(text, key), file }));

/** As a whole: whoever copies it never sees a half. */
const replace = (file: string, text: string): void => {
  const temporary = `${file}.${randomUUID()}`;
  try {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(temporary, text, { flush: true });
    renameSync(temporary, file);
  } catch (error) {
    throw fault('output_failed', `${file} cannot be written: ${messageOf(error)}`);
  }
};

/** Writes the checkpoint of a tenant, unless the file there contradicts it. */
const keep = async ({ app }: OperatorSession, tenantId: string, file: string, key: note.EvidenceKey) => {
  const origin = note.originOf(tenantId);
  const before = existsSync(file) ? keptIn(file, note.verifierKey(origin, key)) : undefined;
  const { set } = await app.live.look();
  const isParked = (await set.progress([tenantId]))[0]?.parked !== undefined;
  const { tree, hashes } = await consistencyProof(set, tenantId, before?.size ?? 0);
  const view = { tenant_id: tenantId, size: tree.size, status: isParked ? 'parked' : 'signed', file };
  if (isParked && hashes === undefined) return view;
  if (before !== undefined && !isConsistent(before, tree, hashes ?? []))
    throw fault(
      'evidence_contradicted',
      `${file}: the log, of which ${tree.size} rows are shown, does not begin with the ${before.size} of this checkpoint.`,
    );
  if (before?.size !== tree.size) replace(file, note.signedCheckpoint({ origin, ...tree }, key));
  return view;
};

type Kept = Awaited<ReturnType<typeof keep>>;

interface CheckpointOptions extends JsonOption {
  readonly tenant?: string;
  readonly output: string;
}

const signAll = async (session: OperatorSession, options: CheckpointOptions): Promise<void> => {
  const { tenant, output } = options;
  const { io, app } = session;
  if (!(await session.upToDate())) throw fault('read_models_unavailable', 'Nothing was signed: try again.');
  const tenants = tenant === undefined ? await allTenants(session) : [await knownTenant(session, tenant)];
  const signingKey = note.evidenceKey(await app.secret());
  const rows: Kept[] = [];
  for (const { id } of tenants) {
    const file = join(output, `${id}.checkpoint`);
    const kept = keep(session, id, file, signingKey).catch((error: unknown): Kept => {
      if (codeOf(error) !== 'evidence_contradicted' && codeOf(error) !== 'file_unreadable') throw error;
      notice(io, `${messageOf(error)} The file stays as it is.`);
      return { tenant_id: id, size: 0, status: 'contradicted', file };
    });
    rows.push(await kept);
  }
  const statuses = new Set(rows.map(({ status }) => status));
  if (statuses.has('parked')) notice(io, 'Of a tenant that is parked, what is shown is signed.');
  if (statuses.has('parked')) io.exitCode = FAILED;
  if (statuses.has('contradicted')) io.exitCode = CONTRADICTED;
  printMany(io, rows, options, 'There are no tenants.');
};

const checkpoints = (io: Io): Command =>
  sessionCommand(io, 'checkpoints', signAll)
    .description(
      'sign the log of every tenant, deleted ones too, and keep the checkpoints in a folder; exit code 4 if one that is kept there contradicts, 1 if a tenant is parked',
    )
    .option('--tenant <uuid>', 'only that of this tenant', uuid)
    .requiredOption('--output <folder>', 'where they are kept, as TENANT.checkpoint');

const key = (io: Io): Command =>
  sessionCommand(io, 'key', async ({ ask, app }, { tenant, json }: TenantOptions) => {
    if ((await ask(tenant, ({ status }) => status)) === 'absent')
      throw fault('tenant_not_found', `There is no tenant ${tenant}.`);
    const text = note.verifierKey(note.originOf(tenant), note.evidenceKey(await app.secret()));
    if (json === true) printJson(io, { tenant_id: tenant, key: text });
    else io.stdout.write(`${text}\n`);
  })
    .description('print the key that the checkpoints of a tenant are checked with')
    .addOption(option.tenant());

interface VerifyOptions extends JsonOption {
  readonly checkpoint?: string;
  readonly earlier?: readonly string[];
  readonly event?: string;
  readonly proof?: string;
  readonly key: string;
}

const printFound = (
  io: Io,
  view: Readonly<Record<string, string | number>>,
  differences: readonly Difference[],
  { json }: JsonOption,
): void => {
  if (differences.length > 0) io.exitCode = CONTRADICTED;
  if (json === true) return printJson(io, differences.length === 0 ? view : { ...view, differences });
  printRecord(io, view);
  for (const { line, to_line = line, what } of differences) {
    const lines = to_line === line ? `Line ${line}: ` : `Lines ${line} to ${to_line}: `;
    notice(io, `${line === undefined ? '' : lines}${what}.`);
  }
};

const verifyExport = async (io: Io, file: string, checkpoint: string, options: VerifyOptions) => {
  const { linesOf } = require('../audit/check-export') as typeof import('../audit/check-export');
  const { checkingExport } = require('../evidence/check-export') as typeof import('../evidence/check-export');
  const [kept, ...others] = [checkpoint, ...(options.earlier ?? [])].map((each) => keptIn(each, options.key));
  const { size, root } = kept as KeptCheckpoint;
  const checking = checkingExport(kept as KeptCheckpoint, others);
  try {
    for await (const line of linesOf(file)) checking.add(line);
  } catch (error) {
    throw fault('file_unreadable', `${file}: ${messageOf(error)}`);
  }
  const { counts, copies, differences } = checking.result();
  printFound(io, { ...counts, size, root: root.toString('base64') }, differences, options);
  if (copies.length > 0 && options.json !== true)
    notice(io, `Second copies of an id, which prove nothing: line ${copies.slice(0, 10).join(', ')}`);
};

const verifyEvent = (io: Io, file: string, proofFile: string, options: VerifyOptions): void => {
  const { checkEvent } = require('../evidence/check-export') as typeof import('../evidence/check-export');
  const { proof, checkpoint } = opened(proofFile, options.key, (text) => {
    const read = note.readProof(text);
    return { proof: read, checkpoint: note.openCheckpoint(read.checkpoint, options.key) };
  });
  const text = opened(file, options.key, (given) => given);
  const event = parsedJson(text) ?? parsedJson(text.split('\n')[0] ?? '');
  const differences = checkEvent(event, proof, checkpoint);
  const { size, root } = checkpoint;
  const view = { proven: 1 - differences.length, row: proof.index + 1, size, root: root.toString('base64') };
  printFound(io, view, differences, options);
};

const HELP = `
Needs neither a service nor its data. EXPORT is what GET /events or tenant-ledger audit gave out, of all events of the
tenant from the first on. Exit code 0: everything is proven, up to the size of the checkpoint; 4: something contradicts
it, and what and where is printed; 1: a file cannot be used.`;

const verify = (io: Io): Command =>
  new Command('verify')
    .description('check an export against signed checkpoints, or one event against its proof')
    .argument('[export]', 'NDJSON with all events of the tenant')
    .option('--checkpoint <file>', 'what the export is checked against')
    .option('--earlier <files...>', 'checkpoints that were kept before')
    .option('--event <file>', 'one event as JSON')
    .option('--proof <file>', 'its proof, as GET /events/{id}/proof gave it out')
    .requiredOption('--key <vkey>', 'the key of the tenant, as you got it in the beginning')
    .addOption(option.json())
    .addHelpText('after', HELP)
    .action((file: string | undefined, options: VerifyOptions, command: Command) => {
      const { checkpoint, earlier, event, proof } = options;
      if (file !== undefined && checkpoint !== undefined && event === undefined && proof === undefined)
        return verifyExport(io, file, checkpoint, options);
      const isOfExport = file !== undefined || checkpoint !== undefined || earlier !== undefined;
      if (event !== undefined && proof !== undefined && !isOfExport)
        return verifyEvent(io, event, proof, options);
      return command.error('error: name an EXPORT and its --checkpoint, or an --event and its --proof');
    });

export const evidenceCommands = commandGroup(
  'evidence',
  'keep signed checkpoints of the logs of tenants, and check exports against them',
  [checkpoints, key, verify],
);
