import { findKeyRecord } from '../../projections/applications';
import { beforeDeadline, threadMs } from '../clock';
import type { AccessChanges } from '../domain/access-changes';
import { isFinal, keyStanding, standingOf, type KeyRecord, type KeyStanding } from '../domain/authority';
import { logFault, type EventLog } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { codeOf } from '../fault';
import type { Ledger } from '../ledger/ledger';
import { findParked } from '../projecting/parking';
import { lastRevision } from '../projecting/stream-revisions';
import type { Generation } from '../read-models/read-models';
import { freshness } from './freshness';
import { rememberedKeys } from './remembered-keys';
import { streamTails } from './stream-tails';

/**
 * What a key stands for, without folding its tenant: from the read model `applications` if that is proven to show what
 * the log held a moment ago, else from the read model and the tenant's own stream since.
 */
export interface KeyCheck {
  /** A good key was good within the last 400 ms. A refusal counts as of this call. */
  forReading(key: CheckedKey): Promise<KeyStanding>;
  /** The same; but while the log is out of reach nothing is refused: `log_unavailable`. */
  forWriting(key: CheckedKey): Promise<KeyStanding>;
  /** As of this call, good or not; `log_unavailable` while the log is out of reach. */
  atHead(key: CheckedKey): Promise<KeyStanding>;
}

export interface CheckedKey {
  readonly tenantId: string;
  readonly digest: string;
  /** ISO 8601: it must not have expired by then. */
  readonly at: string;
  /** On the monotonic clock. */
  readonly deadline: number;
}

export interface KeyCheckParts {
  readonly log: Pick<EventLog, 'head' | 'readStream'>;
  readonly streams: Streams;
  readonly ledger: Pick<Ledger, 'known' | 'askAtHead'>;
  /** The live generation of `applications`. */
  readonly applications: () => Generation;
  /** While it is false the read model is not asked, and tenants are folded. */
  readonly isReady: () => boolean;
  /** How long reads go on after the log last answered. */
  readonly withoutLogMs: number;
}

/** An answer from the read model counts for so long after the head of the log was asked for. */
const PROOF_MS = 400;

const slow = () => logFault('log_unavailable', 'The history of this tenant is still being read.');
const away = () => logFault('log_unavailable', 'The event log does not answer.');

interface Found {
  readonly record: KeyRecord;
  /** False: the log is out of reach, and this is what was last known. */
  readonly isProven: boolean;
}

export const keyCheck = (parts: KeyCheckParts): KeyCheck => {
  const { log, streams, ledger, applications } = parts;
  const fresh = freshness(log);
  const tails = streamTails(log, streams);
  const remembered = rememberedKeys();

  /** The revision is read first: what the documents show beyond it, the stream since then says as well. */
  const fromStream = async (
    generation: Generation,
    { tenantId, digest, deadline }: CheckedKey,
    since: number,
  ): Promise<KeyRecord> => {
    const revision = await lastRevision(generation, tenantId, 'tenant');
    const tail = await beforeDeadline(tails.read(tenantId, revision, since), deadline, slow);
    return findKeyRecord(generation, tenantId, digest, tail.changes);
  };

  /** What was read of the stream before, as long as it is more than the read model shows. */
  const changesRead = async (
    generation: Generation,
    tenantId: string,
  ): Promise<AccessChanges | undefined> => {
    const tail = tails.known(tenantId);
    if (tail === undefined) return undefined;
    if (tail.upTo > (await lastRevision(generation, tenantId, 'tenant'))) return tail.changes;
    tails.forget(tail, tenantId);
    return undefined;
  };

  const withoutLog = async (generation: Generation, { tenantId, digest }: CheckedKey): Promise<Found> => {
    if (threadMs() - fresh.answeredAt() > parts.withoutLogMs) throw away();
    const changes = await changesRead(generation, tenantId);
    return { record: await findKeyRecord(generation, tenantId, digest, changes), isProven: false };
  };

  const fromReadModel = async (
    generation: Generation,
    { tenantId, digest }: CheckedKey,
  ): Promise<KeyRecord | undefined> => {
    const keys = remembered.of(generation);
    const known = tails.known(tenantId) === undefined ? keys.get(digest) : undefined;
    if (known !== undefined) return known;
    if ((await findParked(generation, tenantId)) !== undefined) return undefined;
    const changes = await changesRead(generation, tenantId);
    const record = await findKeyRecord(generation, tenantId, digest, changes);
    if (record.key !== undefined && changes === undefined) keys.set(digest, record);
    return record;
  };

  const find = async (key: CheckedKey, since: number, deadline?: number): Promise<Found> => {
    const generation = applications();
    const shown = await fresh.shows(generation, since, deadline);
    if (shown === 'away') return withoutLog(generation, key);
    const record = shown === 'shown' ? await fromReadModel(generation, key) : undefined;
    return { record: record ?? (await fromStream(generation, key, since)), isProven: true };
  };

  /** What this process has read of the tenant's stream counts at once, if nothing can change it any more. */
  const known = ({ tenantId, digest, at }: CheckedKey): KeyStanding | undefined => {
    const tenant = ledger.known(tenantId);
    const standing = tenant === undefined ? undefined : keyStanding(tenant, digest, at);
    return standing !== undefined && isFinal(standing) ? standing : undefined;
  };

  const provenOrAway = ({ record, isProven }: Found, at: string): KeyStanding => {
    const standing = standingOf(record, at);
    if (isProven || isFinal(standing)) return standing;
    throw away();
  };

  const folded = ({ tenantId, digest, at, deadline }: CheckedKey): Promise<KeyStanding> =>
    ledger.askAtHead(tenantId, (tenant) => keyStanding(tenant, digest, at), deadline);

  const isGood = ({ record }: Found, at: string): boolean => standingOf(record, at).status === 'good';

  /** A write needs no read model: without one its tenant is folded. */
  const orFolded = async (key: CheckedKey, check: () => Promise<KeyStanding>): Promise<KeyStanding> => {
    if (!parts.isReady()) return folded(key);
    try {
      return known(key) ?? (await check());
    } catch (error) {
      if (codeOf(error) === 'read_models_unavailable') return folded(key);
      throw error;
    }
  };

  const atHead = (key: CheckedKey): Promise<KeyStanding> =>
    orFolded(key, async () => provenOrAway(await find(key, threadMs(), key.deadline), key.at));

  return {
    atHead,
    forReading: async (key) => {
      const final = known(key);
      if (final !== undefined) return final;
      const found = await find(key, threadMs() - PROOF_MS);
      if (isGood(found, key.at) || !found.isProven) return standingOf(found.record, key.at);
      return standingOf((await find(key, threadMs())).record, key.at);
    },
    forWriting: (key) =>
      orFolded(key, async () => {
        const found = await find(key, threadMs() - PROOF_MS);
        return isGood(found, key.at) ? standingOf(found.record, key.at) : atHead(key);
      }),
  };
};
