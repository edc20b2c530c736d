import { createHash } from 'node:crypto';
import { rawEvent, tenantEvent, type RawEvent } from '../audit/event-views';
import type { StreamKind } from '../domain/events';
import { UUID_PATTERN } from '../domain/texts';
import { isJsonObject, parsedJson } from '../event-log/event-log';
import { streamNames } from '../event-log/streams';
import { fault } from '../fault';
import { canonicalJson } from './canonical-json';
import { originOf, type Checkpoint, type Proof } from './note';
import { statementOf } from './statement';
import { appended, leafHash, rootByInclusion, rootOf, type Frontier, type Hash } from './tree';

/** Checks what a service gave out against what it signed, without the service and its log. */

/** A checkpoint, and the file that it is kept in. */
export interface KeptCheckpoint extends Checkpoint {
  readonly file: string;
}

/** What contradicts a checkpoint, and where. */
export interface Difference {
  readonly line?: number | undefined;
  readonly to_line?: number;
  readonly what: string;
}

type Members = Readonly<Record<string, unknown>>;

const STREAM = new RegExp(`^(.*)(tenant|activity)-(${UUID_PATTERN})$`, 's');

/** A digest in the place of one that is not shown, so that the event can be read. */
const readable = (type: string, data: unknown): unknown => {
  if (type !== 'KeyAdded' || !isJsonObject(data)) return data;
  const { digest_sha256: digest, ...others } = data;
  return digest === undefined ? data : { ...others, digest };
};

const isEvent = (value: unknown): value is RawEvent =>
  isJsonObject(value) &&
  ['id', 'type', 'stream', 'recorded_at', 'position'].every((name) => typeof value[name] === 'string') &&
  Number.isSafeInteger(value['revision']);

/** An event as `GET /events` or `audit` writes it. Undefined: it is not one of the log of this checkpoint. */
const exported = (line: RawEvent, { origin }: Checkpoint) => {
  const { id, type, stream, revision, position, recorded_at: recordedAt, data, metadata } = line;
  const [, prefix = '', kind, tenantId = ''] = STREAM.exec(stream) ?? [];
  if (kind === undefined || originOf(tenantId) !== origin) return undefined;
  const event = { id, type, revision, recordedAt, data, metadata };
  const view = 'tenant_id' in line ? rawEvent : tenantEvent;
  const logged = { ...event, stream, position, data: readable(type, data) };
  const expected: Members = { ...view(logged, streamNames(prefix)), data };
  // An event that could not be read has neither of these.
  const { log, changes } = expected;
  const given: Members = { log, changes, ...line };
  const isWrong = (name: string) => canonicalJson(given[name]) !== canonicalJson(expected[name]);
  return {
    kind: kind as StreamKind,
    leaf: leafHash(statementOf(tenantId, kind as StreamKind, event)),
    /** A member that repeats what is proven, and says something else. */
    wrongMember: Object.keys({ ...expected, ...given }).find(isWrong),
  };
};

const wrongText = (member: string): string =>
  `its member ${member} says something else than the proven ones${member === 'log' ? ', or is of another version of the program' : ''}`;

/** The tree of the rows so far, compared with each checkpoint where it was made. */
const growingTree = (kept: readonly KeptCheckpoint[]) => {
  const waiting = kept.filter(({ size }) => size > 0).toSorted((a, b) => a.size - b.size);
  let frontier: Frontier = [];
  let rows = 0;
  let proven = 0;
  /** The first line after the rows that are proven. */
  let begin: number | undefined;
  let contradiction: Difference | undefined;

  const compare = ({ size, root, file }: KeptCheckpoint, line: number): void => {
    if (rootOf(frontier).equals(root)) return void (proven = size);
    const agree = proven === 0 ? '' : `; the first ${proven} agree with another checkpoint`;
    const what = `the first ${size} rows are not those of ${file}${agree}`;
    contradiction ??= { line: begin, to_line: line, what };
  };
  return {
    /** Whether everything up to this row is proven. */
    add: (leaf: Hash, line: number): boolean => {
      begin ??= line;
      ({ frontier } = appended(frontier, rows, leaf));
      rows += 1;
      for (; waiting[0]?.size === rows; waiting.shift()) compare(waiting[0], line);
      const isProven = proven === rows && contradiction === undefined;
      if (isProven) begin = undefined;
      return isProven;
    },
    result: () => {
      const [next] = waiting;
      const missing = next && {
        what: `the export has ${rows} of the ${next.size} rows of ${next.file}: it was cut off, or made before that`,
      };
      return { rows, proven, found: [contradiction, missing] };
    },
  };
};

const MAX_LINES_NAMED = 10;

/** Checks the lines of an export against a checkpoint, and those that were kept before it. */
export const checkingExport = (checkpoint: KeptCheckpoint, earlier: readonly KeptCheckpoint[]) => {
  const tree = growingTree([...earlier, checkpoint]);
  const ids = new Set<string>();
  const copies: number[] = [];
  const lines: Difference[] = [];
  const last = { tenant: -1, activity: -1 };
  let number = 0;
  let events = 0;
  let hash = createHash('sha256');
  let misplaced: Difference | undefined;

  const differs = (what: string): void => {
    if (lines.length < MAX_LINES_NAMED) lines.push({ line: number, what });
  };
  const addEvent = (line: RawEvent): void => {
    const event = exported(line, checkpoint);
    if (event === undefined) return;
    const { kind, leaf, wrongMember } = event;
    const isCopy = ids.has(line.id);
    const isNext = line.revision === last[kind] + 1;
    const what = `it has revision ${line.revision} of the ${kind} stream, and ${last[kind] + 1} is next`;
    if (!isCopy && !isNext) misplaced ??= { line: number, what };
    if (!isCopy || isNext) last[kind] = line.revision;
    if (isCopy) return void copies.push(number);
    ids.add(line.id);
    if (wrongMember !== undefined) differs(wrongText(wrongMember));
    if (tree.add(leaf, number)) misplaced = undefined;
  };
  const endWith = (trailer: unknown): void => {
    const given = isJsonObject(trailer) ? trailer : {};
    if (given['events'] !== events || given['sha256'] !== hash.digest('hex'))
      differs('it is not the trailer of the lines before it');
    events = 0;
    hash = createHash('sha256');
  };

  return {
    add: (bytes: Buffer): void => {
      number += 1;
      const value = parsedJson(bytes.toString());
      if (isJsonObject(value) && 'trailer' in value) return endWith(value['trailer']);
      if (bytes.length === 0 || (isJsonObject(value) && 'end' in value)) return;
      if (!isEvent(value)) throw fault('file_unreadable', `Line ${number} is no event of an export.`);
      events += 1;
      hash.update(bytes).update('\n');
      if (!Buffer.from(JSON.stringify(value)).equals(bytes)) differs('it is not as the service writes it');
      addEvent(value);
    },
    result: () => {
      const { rows, proven, found } = tree.result();
      const not_yet_proven = Math.max(0, rows - checkpoint.size);
      const counts = { proven, not_yet_proven, second_copies: copies.length };
      const differences = [...lines, ...found, misplaced].filter((each) => each !== undefined);
      return { counts, copies, differences };
    },
  };
};

/** What contradicts that an event is in the log of a checkpoint: one thing or none. */
export const checkEvent = (value: unknown, { index, hashes }: Proof, checkpoint: Checkpoint) => {
  if (!isEvent(value)) throw fault('file_unreadable', 'It is no event of GET /events or of audit.');
  const event = exported(value, checkpoint);
  if (event === undefined) return [{ what: `the event is not one of ${checkpoint.origin}` }];
  if (event.wrongMember !== undefined) return [{ what: wrongText(event.wrongMember) }];
  const root = rootByInclusion(event.leaf, index, checkpoint.size, hashes);
  const isRow = root?.equals(checkpoint.root) === true;
  return isRow ? [] : [{ what: `the event is not row ${index + 1} of the log` }];
};
