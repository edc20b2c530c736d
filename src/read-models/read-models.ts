import { randomBytes } from 'node:crypto';
import type { Collection, Document, Projector, Reader as Queries } from '../../projections/projector';
import type { Head, Position } from '../event-log/event-log';
import { fault, type Fault } from '../fault';

/**
 * A store of read models. Everything in it can be rebuilt from the log. Every adapter keeps every promise on this page,
 * and `test/read-models/contract` checks each of them.
 *
 * A projection is stored as generations, `<name>_v<version>_<generation>`. At most one per name and version is live, that
 * is, answers queries. A rebuild builds another one and then makes it live.
 *
 * A document is any JSON object and is returned exactly as written. A NUL and a lone surrogate are text like any other,
 * in documents, keys and indexed values. Distinct texts are never treated as equal.
 *
 * A store that cannot be reached or written to rejects with `read_models_unavailable`; the message says where it is. So
 * does a generation whose contents are lost, in whole or in part (`isDamage`), and from then on it is marked as damaged.
 */
export interface ReadModels extends Registry {
  /** Creates an empty generation, bound to this log. Nothing else creates one. */
  create(id: GenerationId, collections: readonly Collection[], log: string): Promise<void>;

  /** Opens a generation, after finishing an unfinished build. `generation_removed`: it does not exist. */
  open(id: GenerationId, collections: readonly Collection[]): Promise<Generation>;

  /** The same for a generation that is built before it is queried. An unfinished build is resumed. */
  build(id: GenerationId, collections: readonly Collection[]): Promise<Build>;

  /** Tells the operator what to do if the read models belong to another log. */
  readonly otherLogHint: string;

  /** How often to look at the registry. Longer for a server on the network. */
  readonly pollMs: number;

  close(): Promise<void>;
}

/** What exists, what is live, who works on it. Reading it creates nothing. */
export interface Registry extends Leases {
  state(): Promise<RegistryState>;

  /**
   * Changes whenever the state changes, in whichever process, other than by the passing of time; otherwise stays the
   * same. Omitted by stores where it would not be much cheaper than `state`.
   */
  readonly stateToken?: () => number;

  /**
   * Compare-and-set: makes a generation live if it exists, is not damaged, and `expected` is what is live now. Otherwise
   * returns false and changes nothing.
   */
  makeLive(id: GenerationId, expected: string | undefined): Promise<boolean>;

  /**
   * Permanently removes a generation with its documents, unless something refuses it: then returns false and changes
   * nothing. If interrupted, it is left marked as damaged.
   */
  remove(id: GenerationId, unless: RemovalGuard): Promise<boolean>;

  /** Asks the process that projects to retry one parked tenant, or all. */
  requestRetry(tenantId?: string): Promise<void>;
}

export interface RegistryState {
  /** All generations that exist. */
  readonly generations: readonly StoredGeneration[];
  /** The leases that are held now. */
  readonly leases: ReadonlyMap<string, HeldLease>;
  readonly retries: RetryRequests;
}

export interface GenerationId {
  readonly projection: string;
  readonly version: number;
  /** Random, and never used again. */
  readonly generation: string;
}

export interface StoredGeneration extends GenerationId {
  readonly isLive: boolean;
  /** How long ago it ceased to be live, by the store's clock. Undefined: it is live, or never was. */
  readonly leftMs?: number;
  /** Why its contents are lost, as found by any process. */
  readonly damage?: string;
}

export interface HeldLease {
  readonly holder: string;
  readonly note: string;
}

export interface Leases {
  /** How long a lease lasts, by the store's clock, unless it is renewed. */
  readonly leaseMs: number;
  /**
   * Takes or renews leases: returns those that `holder` has now. Leases only avoid duplicate work; correctness depends on
   * `commit` and `makeLive` alone. A lease is free earlier if the store detects that its holder is gone.
   */
  lease(names: readonly string[], holder: string, note?: string): Promise<ReadonlySet<string>>;
  release(names: readonly string[], holder: string): Promise<void>;
}

export const newGeneration = (projection: string, version: number): GenerationId => ({
  projection,
  version,
  generation: `g${randomBytes(5).toString('hex')}`,
});

export const generationName = ({ projection, version, generation }: GenerationId): string =>
  `${projection}_v${version}_${generation}`;

/** Without what is stored about it. */
export const idOf = ({ projection, version, generation }: GenerationId): GenerationId => ({
  projection,
  version,
  generation,
});

/** Undefined if it is not the name of a generation. */
export const generationNamed = (name: string): GenerationId | undefined => {
  const [, projection, version, generation] = /^([a-z_]+)_v([0-9]+)_([0-9a-z]+)$/.exec(name) ?? [];
  if (projection === undefined || generation === undefined) return undefined;
  return { projection, version: Number(version), generation };
};

type Version = Pick<Projector, 'name' | 'version'>;

/** The generations of one projection in one version. */
export const generationsOf = (
  { generations }: RegistryState,
  { name, version }: Version,
): readonly StoredGeneration[] =>
  generations.filter((id) => id.projection === name && id.version === version);

export const liveOf = (state: RegistryState, version: Version): StoredGeneration | undefined =>
  generationsOf(state, version).find(({ isLive }) => isLive);

export const generationRemoved = (id: GenerationId): Fault =>
  fault('generation_removed', `There is no generation ${generationName(id)} any more.`);

export const commitTooLarge = (bytes: number, max: number): Fault =>
  fault('commit_too_large', `A commit of ${bytes} bytes exceeds the maximum of ${max}.`);

/** What prevents a generation from being removed. */
export interface RemovalGuard {
  /** Any of these leases is held. */
  readonly held?: readonly string[];
  /** It is live. Omitted: then it ceases to be. */
  readonly live?: boolean;
  /** It ceased to be live less than this time ago: other processes may still read it. */
  readonly leftWithinMs?: number;
}

export interface RetryRequests {
  /** The number of requests so far, never reset. */
  readonly count: number;
  /** The tenant of the last one. Undefined: all tenants. */
  readonly tenantId?: string;
}

/** Where a scan begins: after this document or, without a key, with the first one of the tenant. */
export interface ScanStart {
  readonly tenantId: string;
  readonly key?: string;
}

export interface Scanner {
  /**
   * The documents of a collection, of all tenants, ordered by tenant and key. Well-formed texts are ordered by their
   * UTF-8 bytes.
   */
  scan(collection: string, limit: number, after?: ScanStart): Promise<readonly Scanned[]>;
}

/** What events are projected into: a generation, built or not. Until then only `PARKED` and `STREAMS` can be scanned. */
export interface Target extends Scanner {
  readonly id: GenerationId;
  control(): Promise<Control>;

  /** The maximum size of the documents of one commit, as JSON in UTF-8, including their keys. */
  readonly maxCommitBytes: number;

  /** The documents as of the control state or later, in the order of the keys. */
  load(keys: readonly DocumentKey[]): Promise<readonly (Document | undefined)[]>;

  /**
   * Atomically writes all documents and moves the control state to `n + 1`, but only if it is still at `n`; otherwise
   * returns false. So the winner has read exactly state `n`, and a redelivered batch, a crash at any point, and a second
   * or stale projector are harmless. Throws `commit_too_large` above `maxCommitBytes`, having written nothing.
   */
  commit(n: number, to: Checkpoint | undefined, writes: readonly Write[]): Promise<boolean>;
}

/**
 * A generation that can be queried. Once a commit resolves, it is visible to every later query in any process, and it
 * survives a crash of this process.
 */
export interface Generation extends Target {
  readonly reader: Reader;

  /** A consistent snapshot of the control state and documents, in the order of the keys. */
  snapshot(keys: readonly DocumentKey[]): Promise<Snapshot>;

  /** Like `scan`, with each document as JSON. Comparing that costs a fraction, as nearly all are equal. */
  scanTexts(collection: string, limit: number, after?: ScanStart): Promise<readonly ScannedText[]>;
}

/**
 * A generation that is not queried while it is built. Its own `control` and `load` see a commit once it resolves; other
 * processes may see it later, and a crash may lose the last commits: the control state tells which.
 */
export interface Build extends Target {
  /** Makes it queryable. The build must not be used afterwards. */
  finish(): Promise<Generation>;
}

/** Answers queries, and never writes. */
export interface Reader extends Queries, Scanner {
  /** Queries see everything up to this position. Undefined: nothing yet. */
  applied(): Promise<Position | undefined>;

  /**
   * Changes whenever what this reader sees changes, in whichever process; otherwise stays the same. Omitted by stores
   * where it would not be much cheaper than a read.
   */
  readonly changeToken?: () => number;

  /**
   * The same for stores without `changeToken`, but only as of the last call of `applied`: changes once such a call has
   * found a change.
   */
  readonly appliedToken?: () => number;
}

/** The position up to which events have been applied, and the id of the event there. */
export type Checkpoint = Head;

export interface Control {
  /** The number of commits. */
  readonly n: number;
  readonly to?: Checkpoint;
  /** What queries see. It may trail `to` where a commit and its documents are not written atomically. */
  readonly applied?: Position;
  /** The identity of the log that it is built from. */
  readonly log: string;
}

export interface Snapshot {
  readonly control: Control;
  readonly documents: readonly (Document | undefined)[];
}

export interface DocumentKey {
  readonly tenantId: string;
  readonly collection: string;
  readonly key: string;
}

export interface Write extends DocumentKey {
  /** Undefined deletes it. */
  readonly document: Document | undefined;
}

export interface Scanned extends Required<ScanStart> {
  readonly document: Document;
}

/** Equal texts are equal documents. Documents whose members are in another order are equal too. */
export interface ScannedText extends Required<ScanStart> {
  readonly text: string;
}

/** One step of a comparison. */
export interface Compared {
  /** The number of live documents compared in this step. */
  readonly documents: number;
  readonly suspects: readonly Suspect[];
}

/** A document that may differ. */
export interface Suspect extends DocumentKey {
  /** The side on which it was found. A document that both have may be found on either side, or on both. */
  readonly seenIn: 'live' | 'rebuilt';
}

/** A collection that every generation has besides its projector's own: one document per parked tenant. */
export const PARKED = 'parked';

/** Another one: per tenant, the last revision applied of each of its streams. */
export const STREAMS = 'streams';

/** Written last, because they say how much of a stream has been applied. */
export const COMMON_COLLECTIONS: readonly Collection[] = [PARKED, STREAMS].map((name) => ({
  name,
  indexes: {},
}));
