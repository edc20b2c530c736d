import { createHash, type Hash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { yieldToEventLoop } from '../../clock';
import { fault, messageOf, type Fault } from '../../fault';
import {
  closeTidily,
  inTransaction,
  openForReading,
  openForWriting,
  type Database,
} from '../../sqlite/database';
import type { Position } from '../event-log';
import { createTables, findLog, hasStoredAt, syncFile } from './log-file';
import { positionOf } from './reader';

/**
 * Backs up a log while it is being written to. A backup is a folder with an exact copy of the events and a manifest.
 * The log is append-only, so any prefix of it is consistent: a backup blocks no writer, and the next one into the same
 * folder adds only what is new.
 */
interface Segment {
  /** The positions of the first and the last event. */
  readonly first: Position;
  readonly last: Position;
  readonly events: number;
  /** SHA-256 over every stored byte of these events. */
  readonly sha256: string;
}

interface Manifest {
  readonly format: 1;
  /** The identity of the log. */
  readonly identity: string;
  readonly segments: Segment[];
}

/** What a backup covers. */
export interface BackedUp {
  readonly identity: string;
  readonly events: number;
  readonly lastPosition: Position | undefined;
  /** When the last event was recorded. */
  readonly lastRecordedAt: string | undefined;
  /** SHA-256 over the digests of all segments. */
  readonly digest: string;
}

export type OnProgress = (done: number, total: number) => void;

const EVENTS = 'events.db';
const MANIFEST = 'manifest.json';
/** A killed backup resumes after the last complete segment. */
const SEGMENT_EVENTS = 50_000;
const PAGE_EVENTS = 1_000;

const unusable = (why: string): Fault => fault('backup_unusable', why);

/** Copied as bytes, because stored text may not be representable as a JavaScript string. */
const TEXTS = ['stream', 'id', 'type', 'data', 'metadata'] as const;
type Row = readonly [
  position: number,
  revision: number,
  recordedAt: number,
  storedAt: number | null,
  ...texts: Uint8Array[],
];

const rowsOf = (db: Database) => {
  const storedAt = hasStoredAt(db) ? 'stored_at' : 'NULL';
  const statement = db.prepare(
    `SELECT position, revision, recorded_at, ${storedAt}, ${TEXTS.map((name) => `CAST(${name} AS BLOB)`).join()}
     FROM events WHERE position > ? AND position <= ? ORDER BY position LIMIT ?`,
  );
  statement.setReturnArrays(true);
  return (after: number, upTo: number, max: number): readonly Row[] => statement.all(after, upTo, max);
};

const addTo = (hash: Hash, row: Row): void => {
  const [position, revision, recordedAt, storedAt, ...texts] = row;
  hash.update(
    `${position} ${revision} ${recordedAt} ${storedAt} ${texts.map(({ length }) => length).join(' ')}\n`,
  );
  for (const text of texts) hash.update(text);
};

const writerOf = (db: Database) => {
  const insert = db.prepare(
    `INSERT INTO events (position, revision, recorded_at, stored_at, ${TEXTS.join()})
     VALUES (?, ?, ?, ?, ${TEXTS.map(() => 'CAST(? AS TEXT)').join()})`,
  );
  return (rows: readonly Row[]): void => {
    try {
      inTransaction(db, () => {
        for (const row of rows) insert.run(...row);
      });
    } catch (error) {
      if (!messageOf(error).includes('UNIQUE')) throw error;
      throw unusable('Another backup into this folder is in progress. Wait until it ends, and try again.');
    }
  };
};

/** Reads a range page by page, yielding to the event loop in between, and returns its digest. */
const digestRange = async (
  db: Database,
  { after, upTo, max }: { readonly after: number; readonly upTo: number; readonly max: number },
  onPage: (rows: readonly Row[]) => void = () => undefined,
): Promise<Segment | undefined> => {
  const [read, hash] = [rowsOf(db), createHash('sha256')];
  let [events, first, last] = [0, after, after];
  for (;;) {
    const rows = read(last, upTo, Math.min(PAGE_EVENTS, max - events));
    if (rows.length === 0) break;
    for (const row of rows) addTo(hash, row);
    onPage(rows);
    if (events === 0) first = rows[0]?.[0] ?? after;
    last = rows.at(-1)?.[0] ?? last;
    events += rows.length;
    await yieldToEventLoop();
  }
  if (events === 0) return undefined;
  return { first: positionOf(first), last: positionOf(last), events, sha256: hash.digest('hex') };
};

const rowIdAfter = ({ segments }: Manifest): number => Number(segments.at(-1)?.last ?? 0);
const eventsIn = ({ segments }: Manifest): number => segments.reduce((sum, { events }) => sum + events, 0);

const identityOf = (db: Database): string =>
  (db.prepare(`SELECT value FROM meta WHERE name = 'identity'`).get() as { value: string } | undefined)
    ?.value ?? '';

const headOf = (db: Database): number =>
  (db.prepare('SELECT max(position) AS head FROM events').get() as { head: number | null }).head ?? 0;

const countAfter = (db: Database, after: number): number =>
  (db.prepare('SELECT count(*) AS events FROM events WHERE position > ?').get(after) as { events: number })
    .events;

const reachOf = (db: Database, manifest: Manifest): BackedUp => {
  const last = rowIdAfter(manifest);
  const row = db.prepare('SELECT recorded_at AS at FROM events WHERE position = ?').get(last) as
    { at: number } | undefined;
  const hash = createHash('sha256');
  for (const { sha256 } of manifest.segments) hash.update(`${sha256}\n`);
  return {
    identity: manifest.identity,
    events: eventsIn(manifest),
    lastPosition: manifest.segments.at(-1)?.last,
    lastRecordedAt: row === undefined ? undefined : new Date(row.at).toISOString(),
    digest: hash.digest('hex'),
  };
};

const isManifest = (value: unknown): value is Manifest => {
  const { format, identity, segments } = (value ?? {}) as Partial<Manifest>;
  return format === 1 && typeof identity === 'string' && Array.isArray(segments);
};

const readManifest = (folder: string): Manifest => {
  let found: unknown;
  try {
    found = JSON.parse(readFileSync(join(folder, MANIFEST), 'utf8'));
  } catch (error) {
    throw unusable(
      `The folder ${folder} contains no backup: its ${MANIFEST} cannot be read (${messageOf(error)}).`,
    );
  }
  if (isManifest(found)) return found;
  throw unusable(
    `The ${MANIFEST} in ${folder} is not that of a backup, or was made by a newer tenant-ledger.`,
  );
};

/** Atomic, even across a power loss. */
const writeManifest = (folder: string, manifest: Manifest): void => {
  const path = join(folder, MANIFEST);
  writeFileSync(`${path}.new`, `${JSON.stringify(manifest, undefined, 2)}\n`);
  syncFile(`${path}.new`);
  renameSync(`${path}.new`, path);
  syncFile(folder);
};

const OWN_FILES = new Set([EVENTS, `${EVENTS}-wal`, `${EVENTS}-shm`, MANIFEST, `${MANIFEST}.new`]);

/** Starts a backup, or finds the one to continue. */
const manifestFor = (folder: string, identity: string): Manifest => {
  const files = readdirSync(folder);
  if (files.includes(MANIFEST)) return readManifest(folder);
  const foreign = files.find((name) => !OWN_FILES.has(name)) ?? (files.includes(EVENTS) ? EVENTS : undefined);
  if (foreign !== undefined)
    throw unusable(
      `The folder ${folder} contains ${foreign} and no backup. Name an empty folder, or that of an earlier backup.`,
    );
  const empty: Manifest = { format: 1, identity, segments: [] };
  writeManifest(folder, empty);
  return empty;
};

const mustContinue = async (source: Database, manifest: Manifest, folder: string): Promise<void> => {
  if (identityOf(source) !== manifest.identity)
    throw unusable(`The folder ${folder} contains a backup of another event log. Name another folder.`);
  const last = manifest.segments.at(-1);
  if (last === undefined) return;
  const found = await digestRange(source, {
    after: Number(last.first) - 1,
    upTo: Number(last.last),
    max: last.events + 1,
  });
  if (found?.sha256 !== last.sha256)
    throw unusable(
      `The event log no longer has the events ${last.first} to ${last.last} as they were backed up in ${folder}: it was changed or set back. Keep that backup, and name another folder for a new one.`,
    );
};

/** The log's own metadata: identity, prefix and format. */
const copyMeta = (source: Database, copy: Database): void => {
  const put = copy.prepare('INSERT OR REPLACE INTO meta VALUES (?, ?)');
  const rows = source.prepare('SELECT name, value FROM meta').all() as { name: string; value: string }[];
  for (const { name, value } of rows) put.run(name, value);
};

/** Deletes the incomplete segment of a killed backup, which is then copied again. */
const openCopy = (folder: string, source: Database, manifest: Manifest): Database => {
  const path = join(folder, EVENTS);
  const copy = openForWriting(path, 'FULL');
  createTables(copy, path);
  inTransaction(copy, () => {
    copyMeta(source, copy);
    copy.prepare('DELETE FROM events WHERE position > ?').run(rowIdAfter(manifest));
  });
  const [found, expected] = [countAfter(copy, 0), eventsIn(manifest)];
  if (found === expected) return copy;
  copy.close();
  throw unusable(
    `The backup in ${folder} contains ${found} of its ${expected} events: something was removed or added. Name another folder for a new one.`,
  );
};

/** Copies one segment and verifies it by reading the copy. */
const copySegment = async (
  source: Database,
  copy: Database,
  after: number,
  upTo: number,
  onPage: (events: number) => void,
): Promise<Segment | undefined> => {
  const write = writerOf(copy);
  const segment = await digestRange(source, { after, upTo, max: SEGMENT_EVENTS }, (rows) => {
    write(rows);
    onPage(rows.length);
  });
  if (segment === undefined) return undefined;
  const written = await digestRange(copy, { after, upTo: Number(segment.last), max: segment.events + 1 });
  if (written?.sha256 === segment.sha256) return segment;
  throw unusable(
    `The events ${segment.first} to ${segment.last} were not written as they are in the log. Check the disk.`,
  );
};

/** Up to the given head, however much is appended in the meantime. */
const copyNew = async (
  source: Database,
  copy: Database,
  head: number,
  { folder, manifest, onProgress }: { folder: string; manifest: Manifest; onProgress: OnProgress },
): Promise<number> => {
  const total = countAfter(source, rowIdAfter(manifest));
  let done = 0;
  const onPage = (events: number): void => onProgress((done += events), total);
  for (;;) {
    const segment = await copySegment(source, copy, rowIdAfter(manifest), head, onPage);
    if (segment === undefined) return done;
    manifest.segments.push(segment);
    writeManifest(folder, manifest);
  }
};

/** Adds everything new in the log to a backup, or starts one. */
export const createBackup = async (
  logFolder: string,
  folder: string,
  onProgress: OnProgress,
): Promise<BackedUp & { readonly added: number }> => {
  const path = join(logFolder, EVENTS);
  if (findLog(path) === 'absent')
    throw fault('log_not_found', `There is no event log in the folder ${logFolder}.`);
  const source = openForReading(path);
  let copy: Database | undefined;
  try {
    const manifest = manifestFor(folder, identityOf(source));
    await mustContinue(source, manifest, folder);
    // Read before the format, which may be raised at any time, so that the copied format allows all events up to here.
    const head = headOf(source);
    copy = openCopy(folder, source, manifest);
    const added = await copyNew(source, copy, head, { folder, manifest, onProgress });
    return { ...reachOf(copy, manifest), added };
  } finally {
    if (copy !== undefined) closeTidily(copy);
    source.close();
  }
};

const mustBeContiguous = (db: Database, last: number): void => {
  const gap = db
    .prepare(
      `SELECT stream FROM events WHERE position <= ? GROUP BY stream HAVING count(*) <= max(revision) LIMIT 1`,
    )
    .get(last) as { stream: string } | undefined;
  if (gap !== undefined)
    throw unusable(
      `The stream ${gap.stream} lacks events in this backup; they were missing from the log. \`tenant-ledger log verify\` lists all of them.`,
    );
};

/** Reads the whole backup. Throws `backup_unusable` at the first difference. */
export const verifyBackup = async (folder: string, onProgress: OnProgress): Promise<BackedUp> => {
  const manifest = readManifest(folder);
  const path = join(folder, EVENTS);
  if (!existsSync(path)) throw unusable(`The backup in ${folder} has no ${EVENTS}.`);
  const db = openForReading(path);
  try {
    if (identityOf(db) !== manifest.identity)
      throw unusable(`The ${EVENTS} in ${folder} is not that of its ${MANIFEST}.`);
    let [after, done] = [0, 0];
    for (const segment of manifest.segments) {
      const range = { after, upTo: Number(segment.last), max: segment.events + 1 };
      const found = await digestRange(db, range, (rows) =>
        onProgress((done += rows.length), eventsIn(manifest)),
      );
      if (found?.sha256 !== segment.sha256 || found.events !== segment.events)
        throw unusable(
          `The events ${segment.first} to ${segment.last} in ${folder} are not those that were backed up: something was changed, removed or added.`,
        );
      after = Number(segment.last);
    }
    mustBeContiguous(db, after);
    return reachOf(db, manifest);
  } catch (error) {
    throw (error as Partial<Fault>).code === 'backup_unusable'
      ? error
      : unusable(`The backup in ${folder} cannot be read: ${messageOf(error)}`);
  } finally {
    db.close();
  }
};

/** Verifies a backup and copies it into an empty folder. The log file gets its name only when it is complete. */
export const restoreBackup = async (
  folder: string,
  target: string,
  onProgress: OnProgress,
): Promise<BackedUp> => {
  const [found] = readdirSync(target);
  if (found !== undefined)
    throw fault(
      'restore_refused',
      `The folder ${target} contains ${found}. A backup is only restored into an empty folder: name another DATA_DIR, or move the contents away.`,
    );
  const restored = await verifyBackup(folder, onProgress);
  const path = join(target, EVENTS);
  const incomplete = `${path}.restoring`;
  try {
    for (const end of ['', '-wal'])
      if (existsSync(join(folder, EVENTS + end))) copyFileSync(join(folder, EVENTS + end), incomplete + end);
    const db = openForWriting(incomplete, 'FULL');
    // The incomplete segment of a killed backup is not part of it.
    db.prepare('DELETE FROM events WHERE position > ?').run(Number(restored.lastPosition ?? 0));
    closeTidily(db);
    syncFile(incomplete);
    renameSync(incomplete, path);
    syncFile(target);
  } finally {
    for (const end of ['', '-wal', '-shm']) rmSync(incomplete + end, { force: true });
  }
  return restored;
};
