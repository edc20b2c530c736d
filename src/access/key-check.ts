import { findKeyRecord } from '../../projections/applications';
import { beforeDeadline, threadMs } from '../clock';
import type { AccessChanges } from '../domain/access-changes';
import { isFinal, standingOf, type KeyRecord, type KeyStanding } from '../domain/authority';
import { logFault, type EventLog } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { fault } from '../fault';
import { stillReading } from '../ledger/folds';
import type { KeyCheck, PresentedKey } from '../ledger/identify';
import { findParked } from '../projecting/parking';
import { lastRevision } from '../projecting/stream-revisions';
import type { Reader } from '../read-models/read-models';
import { remembering, type RememberingReaders } from '../read-models/remembering';
import { freshness, type Freshness } from './freshness';
import { streamTails, type StreamTails } from './stream-tails';

export interface KeyCheckParts {
  readonly log: Pick<EventLog, 'head' | 'readStream'>;
  readonly streams: Streams;
  /** Reads the live generation of `applications`. */
  readonly applications: () => Reader;
  /** How long reads are still served after the log last responded. */
  readonly withoutLogMs: number;
}

/** How long a proof counts, from when the log was asked for its head. */
const PROOF_MS = 400;

const away = () => logFault('log_unavailable', 'The event log does not answer.');
const notCaughtUp = () => fault('read_models_unavailable', 'The read models have not caught up yet.');

interface Sources extends KeyCheckParts {
  readonly fresh: Freshness;
  readonly tails: StreamTails;
  readonly readers: RememberingReaders;
  /** Whether the read model has ever shown everything that was in the log. */
  wasEverShown: boolean;
}

interface Found {
  readonly record: KeyRecord;
  /** False: the log is unavailable, and this is the last known state. */
  readonly isProven: boolean;
}

/** The changes already read from the stream, as long as the read model does not show all of them. */
const cachedChanges = async (
  { tails }: Sources,
  reader: Reader,
  tenantId: string,
): Promise<AccessChanges | undefined> => {
  const tail = tails.known(tenantId);
  if (tail === undefined) return undefined;
  if (tail.upTo > (await lastRevision(reader, tenantId, 'tenant'))) return tail.changes;
  tails.forget(tail, tenantId);
  return undefined;
};

/** Undefined: the tenant is parked in the read model. */
const readRecord = async (
  sources: Sources,
  reader: Reader,
  { tenantId, digest }: PresentedKey,
): Promise<KeyRecord | undefined> => {
  if ((await findParked(reader, tenantId)) !== undefined) return undefined;
  const changes = await cachedChanges(sources, reader, tenantId);
  return findKeyRecord(reader, tenantId, digest, changes);
};

/** Cached until the read model changes, but only if nothing beyond it was read from the stream. */
const fromReadModel: typeof readRecord = (sources, reader, key) => {
  const { tails, readers } = sources;
  const read = () => readRecord(sources, reader, key);
  return tails.known(key.tenantId) === undefined
    ? readers.reader('applications').once(`${key.tenantId} ${key.digest}`, read)
    : read();
};

/** The revision is read first: anything newer in the documents is also in the stream after that revision. */
const fromStream = async (
  { tails }: Sources,
  reader: Reader,
  { tenantId, digest, deadline }: PresentedKey,
  since: number,
): Promise<KeyRecord> => {
  const revision = await lastRevision(reader, tenantId, 'tenant');
  const tail = await beforeDeadline(tails.read(tenantId, revision, since), deadline, stillReading);
  return findKeyRecord(reader, tenantId, digest, tail.changes);
};

/** A refusal stands if it is final, or if the read model lacks nothing that the log is known to contain. */
const withoutLog = async (
  sources: Sources,
  reader: Reader,
  { tenantId, digest, at }: PresentedKey,
): Promise<Found> => {
  if (threadMs() - sources.fresh.answeredAt() > sources.withoutLogMs) throw away();
  const changes = await cachedChanges(sources, reader, tenantId);
  const record = await findKeyRecord(reader, tenantId, digest, changes);
  const standing = standingOf(record, at);
  if (standing.status !== 'good' && !isFinal(standing) && !(await sources.fresh.showsLastHead(reader)))
    throw away();
  return { record, isProven: false };
};

const find = async (
  sources: Sources,
  key: PresentedKey,
  since: number,
  deadline?: number,
): Promise<Found> => {
  const reader = sources.applications();
  const { fresh } = sources;
  const shown = fresh.isProven(reader, since) ? 'shown' : await fresh.shows(reader, since, deadline);
  if (shown === 'away') return withoutLog(sources, reader, key);
  sources.wasEverShown ||= shown === 'shown';
  const record = shown === 'shown' ? await fromReadModel(sources, reader, key) : undefined;
  return { record: record ?? (await fromStream(sources, reader, key, since)), isProven: true };
};

/** A read model that has not caught up since startup lacks too much: folding the tenant is cheaper. */
const findToWrite: typeof find = async (sources, key, since, deadline) => {
  const { fresh, wasEverShown, applications } = sources;
  if (!wasEverShown && (await fresh.shows(applications(), since, deadline)) === 'behind') throw notCaughtUp();
  return find(sources, key, since, deadline);
};

const atHead = async (sources: Sources, key: PresentedKey): Promise<KeyStanding> => {
  const { record, isProven } = await findToWrite(sources, key, threadMs(), key.deadline);
  const standing = standingOf(record, key.at);
  if (isProven || isFinal(standing)) return standing;
  throw away();
};

/**
 * Checks keys in the read model `applications` if that is proven to show what was in the log a moment ago, otherwise in
 * the read model and the rest of the tenant's stream.
 */
export const keyCheck = (parts: KeyCheckParts): KeyCheck & { close(): Promise<void> } => {
  const { log, streams, applications } = parts;
  // Cached records must not be older than a proof. A store that cannot report changes is read again after each proof.
  const readers = remembering(applications, 'keep');
  const fresh = freshness(log, readers.lookAgain);
  const tails = streamTails(log, streams);
  const sources: Sources = { ...parts, fresh, tails, readers, wasEverShown: false };
  return {
    forReading: async (key) => {
      const { record, isProven } = await find(sources, key, threadMs() - PROOF_MS);
      const standing = standingOf(record, key.at);
      if (standing.status === 'good' || !isProven) return standing;
      return standingOf((await find(sources, key, threadMs())).record, key.at);
    },
    forWriting: async (key) => {
      const { record } = await findToWrite(sources, key, threadMs() - PROOF_MS);
      const standing = standingOf(record, key.at);
      return standing.status === 'good' ? standing : atHead(sources, key);
    },
    atHead: (key) => atHead(sources, key),
    close: fresh.close,
  };
};
