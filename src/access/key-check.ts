import { findKeyRecord } from '../../projections/applications';
import { beforeDeadline, threadMs } from '../clock';
import type { AccessChanges } from '../domain/access-changes';
import { isFinal, standingOf, type KeyRecord, type KeyStanding } from '../domain/authority';
import { logFault, type EventLog } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { fault } from '../fault';
import type { KeyCheck, PresentedKey } from '../ledger/identify';
import { findParked } from '../projecting/parking';
import { lastRevision } from '../projecting/stream-revisions';
import type { Reader } from '../read-models/read-models';
import { freshness } from './freshness';
import { rememberedKeys } from './remembered-keys';
import { streamTails } from './stream-tails';

export interface KeyCheckParts {
  readonly log: Pick<EventLog, 'head' | 'readStream'>;
  readonly streams: Streams;
  /** Reads the live generation of `applications`. */
  readonly applications: () => Reader;
  /** How long reads go on after the log last answered. */
  readonly withoutLogMs: number;
}

/** An answer from the read model counts for so long after the head of the log was asked for. */
const PROOF_MS = 400;

const slow = () => logFault('log_unavailable', 'The history of this tenant is still being read.');
const away = () => logFault('log_unavailable', 'The event log does not answer.');
const notCaughtUp = () => fault('read_models_unavailable', 'The read models have not caught up yet.');

interface Found {
  readonly record: KeyRecord;
  /** False: the log is out of reach, and this is what was last known. */
  readonly isProven: boolean;
}

/**
 * From the read model `applications` if that is proven to show what the log held a moment ago, else from the read model
 * and the tenant's own stream since.
 */
export const keyCheck = (parts: KeyCheckParts): KeyCheck & { close(): Promise<void> } => {
  const { log, streams, applications } = parts;
  const fresh = freshness(log);
  const tails = streamTails(log, streams);
  const remembered = rememberedKeys();
  let wasShown = false;

  /** The revision is read first: what the documents show beyond it, the stream since then says as well. */
  const fromStream = async (
    reader: Reader,
    { tenantId, digest, deadline }: PresentedKey,
    since: number,
  ): Promise<KeyRecord> => {
    const revision = await lastRevision(reader, tenantId, 'tenant');
    const tail = await beforeDeadline(tails.read(tenantId, revision, since), deadline, slow);
    return findKeyRecord(reader, tenantId, digest, tail.changes);
  };

  /** What was read of the stream before, as long as it is more than the read model shows. */
  const changesRead = async (reader: Reader, tenantId: string): Promise<AccessChanges | undefined> => {
    const tail = tails.known(tenantId);
    if (tail === undefined) return undefined;
    if (tail.upTo > (await lastRevision(reader, tenantId, 'tenant'))) return tail.changes;
    tails.forget(tail, tenantId);
    return undefined;
  };

  const withoutLog = async (reader: Reader, { tenantId, digest }: PresentedKey): Promise<Found> => {
    if (threadMs() - fresh.answeredAt() > parts.withoutLogMs) throw away();
    const changes = await changesRead(reader, tenantId);
    return { record: await findKeyRecord(reader, tenantId, digest, changes), isProven: false };
  };

  const fromReadModel = async (
    reader: Reader,
    { tenantId, digest }: PresentedKey,
  ): Promise<KeyRecord | undefined> => {
    const keys = remembered.of(reader);
    const known = tails.known(tenantId) === undefined ? keys.get(digest) : undefined;
    if (known !== undefined) return known;
    if ((await findParked(reader, tenantId)) !== undefined) return undefined;
    const changes = await changesRead(reader, tenantId);
    const record = await findKeyRecord(reader, tenantId, digest, changes);
    if (record.key !== undefined && changes === undefined) keys.set(digest, record);
    return record;
  };

  const find = async (key: PresentedKey, since: number, deadline?: number): Promise<Found> => {
    const reader = applications();
    const shown = await fresh.shows(reader, since, deadline);
    if (shown === 'away') return withoutLog(reader, key);
    wasShown ||= shown === 'shown';
    const record = shown === 'shown' ? await fromReadModel(reader, key) : undefined;
    return { record: record ?? (await fromStream(reader, key, since)), isProven: true };
  };

  /** A read model that has not caught up since the start lacks too much: to fold the tenant is cheaper. */
  const findToWrite = async (key: PresentedKey, since: number, deadline?: number): Promise<Found> => {
    if (!wasShown && (await fresh.shows(applications(), since, deadline)) === 'behind') throw notCaughtUp();
    return find(key, since, deadline);
  };

  const isGood = ({ record }: Found, at: string): boolean => standingOf(record, at).status === 'good';

  const atHead = async (key: PresentedKey): Promise<KeyStanding> => {
    const { record, isProven } = await findToWrite(key, threadMs(), key.deadline);
    const standing = standingOf(record, key.at);
    if (isProven || isFinal(standing)) return standing;
    throw away();
  };

  return {
    atHead,
    forReading: async (key) => {
      const found = await find(key, threadMs() - PROOF_MS);
      if (isGood(found, key.at) || !found.isProven) return standingOf(found.record, key.at);
      return standingOf((await find(key, threadMs())).record, key.at);
    },
    forWriting: async (key) => {
      const found = await findToWrite(key, threadMs() - PROOF_MS);
      return isGood(found, key.at) ? standingOf(found.record, key.at) : atHead(key);
    },
    close: fresh.close,
  };
};
