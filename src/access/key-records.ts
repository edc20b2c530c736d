import { findKeyRecord } from '../../projections/applications';
import { boundedCache } from '../bounded-cache';
import { beforeDeadline, threadMs } from '../async/clock';
import { isFinal, statusOf, type KeyRecord } from '../domain/authority';
import { logFault, type EventLog } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { codeOf } from '../fault';
import type { KeyRecords } from '../ledger/identify';
import type { PresentedKey } from '../ledger/request';
import { findParked } from '../projecting/parked-tenants';
import { lastRevision } from '../projecting/stream-revisions';
import type { Reader } from '../read-models/read-models';
import { singleFlightBy } from '../async/single-flight';
import { freshness } from './freshness';

interface KeyRecordsDependencies {
  readonly log: Pick<EventLog, 'head' | 'readStream'>;
  readonly streams: Streams;
  /** Reads the live generation of `applications`. */
  readonly applications: () => Reader;
  /** How long reads are still served after the log last responded. */
  readonly withoutLogMs: number;
}

/** The maximum number of cached records, and of cached proofs. */
const MAX_CACHED = 2_000;

const away = () => logFault('log_unavailable', 'The event log does not answer.');

/** Undefined: the tenant is parked in the read model. */
const readRecord = async (
  reader: Reader,
  { tenantId, digest }: PresentedKey,
): Promise<KeyRecord | undefined> =>
  (await findParked(reader, tenantId)) === undefined ? findKeyRecord(reader, tenantId, digest) : undefined;

/** A read model that cannot be read proves nothing. */
const unprovenIfAway = (error: unknown): undefined => {
  if (codeOf(error) !== 'read_models_unavailable') throw error;
};

/** The records of known keys, for as long as a proof finds that the store has not changed. */
const cachedRecords = () => {
  const records = new Map<string, Promise<KeyRecord | undefined>>();
  let proofs = 0;
  /** What the records were read from, and its change token then. */
  let from: { readonly reader: Reader; readonly token: number } | undefined;

  const look = (reader: Reader): void => {
    // A store that cannot tell whether it has changed is read again after each proof.
    const token = reader.changeToken?.() ?? reader.appliedToken?.() ?? proofs;
    if (from?.reader !== reader || from.token !== token) records.clear();
    from = { reader, token };
  };

  return {
    onProof: () => {
      proofs += 1;
    },
    read: (reader: Reader, key: PresentedKey): Promise<KeyRecord | undefined> => {
      look(reader);
      if (records.size >= MAX_CACHED) records.clear();
      const name = `${key.tenantId} ${key.digest}`;
      const cached = records.get(name);
      if (cached !== undefined) return cached;
      const record = readRecord(reader, key);
      records.set(name, record);
      const forget = () => records.get(name) === record && records.delete(name);
      record.then((found) => found?.key === undefined && forget(), forget);
      return record;
    },
  };
};

interface TenantProof {
  readonly at: number;
  readonly reader: Reader;
}

/**
 * Proves the same for one tenant, while the read model lags behind the log: its stream has nothing after the revision
 * that the read model shows. So a forged key costs no fold, unless it names a tenant that has just changed.
 */
const tenantProofs = ({ log, streams, applications }: KeyRecordsDependencies) => {
  const proofs = boundedCache<TenantProof>(MAX_CACHED);

  const runs = singleFlightBy(async (tenantId, at): Promise<TenantProof | undefined> => {
    const reader = applications();
    const revision = await lastRevision(reader, tenantId, 'tenant');
    for await (const { length } of log.readStream(streams.tenant(tenantId), revision))
      if (length > 0) return undefined;
    proofs.put(tenantId, { at, reader });
    return { at, reader };
  });

  return async ({ tenantId, deadline }: PresentedKey, since: number): Promise<Reader | undefined> => {
    const known = proofs.get(tenantId);
    if (known !== undefined && known.at >= since && known.reader === applications()) return known.reader;
    // If the stream cannot be read, the fold reports why.
    const proof = await beforeDeadline(runs.since(tenantId, since), deadline, away).catch(() => undefined);
    return proof?.reader;
  };
};

/** What the read model `applications` says about keys, if it is proven to show what was in the log a moment ago. */
export const keyRecords = (dependencies: KeyRecordsDependencies): KeyRecords & { close(): Promise<void> } => {
  const { log, applications, withoutLogMs } = dependencies;
  const cache = cachedRecords();
  const provenFor = tenantProofs(dependencies);
  const fresh = freshness(log, cache.onProof);

  /**
   * A refusal stands if it is final, or if the read model lacks nothing that the log is known to contain. A valid key is
   * accepted if the read model lacked nothing a moment before the log went away, and the tenant is not parked in it.
   */
  const withoutLog = async (reader: Reader, key: PresentedKey): Promise<KeyRecord> => {
    if (threadMs() - fresh.answeredAt() > withoutLogMs) throw away();
    const record = await readRecord(reader, key);
    if (record === undefined) throw away();
    const found = statusOf(record, key.at);
    const isCertain =
      found.status === 'valid'
        ? await fresh.showedLately(reader)
        : isFinal(found) || (await fresh.showsLastHead(reader));
    if (!isCertain) throw away();
    return record;
  };

  const proven = async (key: PresentedKey, since: number): Promise<KeyRecord | 'away' | undefined> => {
    const reader = applications();
    const deadline = key.isWrite === true ? key.deadline : undefined;
    const shown = await fresh.shows(reader, since, deadline);
    if (shown === 'away') return shown;
    if (shown === 'shown') return cache.read(reader, key);
    const current = await provenFor(key, since);
    return current === undefined ? undefined : readRecord(current, key);
  };

  return {
    find: async (key, since) => {
      const found = await proven(key, since).catch(unprovenIfAway);
      if (found !== 'away') return found;
      if (key.isWrite === true) throw away();
      return withoutLog(applications(), key);
    },
    close: fresh.close,
  };
};
