import type { Collection, Document, Reader as Questions } from '../../projections/projector';
import type { Head, Position } from '../event-log/event-log';
import { fault, type Fault } from '../fault';

/**
 * A store of read models. Everything in it can be rebuilt from the log. Every adapter keeps every promise on this page,
 * and `test/read-models/contract` checks each of them.
 *
 * A projection is stored as generations, `<name>_v<version>_<generation>`. A pointer per name and version says which
 * one is live, that is, answers queries. A rebuild builds another generation and then moves the pointer.
 *
 * A document is any JSON object and is returned exactly as written. A NUL and a lone surrogate are text like any other,
 * in documents, keys and indexed values. Distinct texts are never treated as equal.
 *
 * A store that cannot be reached or written to rejects with `read_models_unavailable`; the message says where it is. So
 * does a generation whose contents are lost, in whole or in part (`isDamage`), and from then on it is marked as damaged.
 */
export interface ReadModels extends Registry {
  /**
   * Opens a generation. If it does not exist, creates it, empty and bound to this log; an unfinished build is finished
   * first. A removed generation is never created again: `generation_removed`. Nor is one that a pointer names: it is
   * damaged, like one that is marked as such.
   */
  open(id: GenerationId, collections: readonly Collection[], log: string): Promise<Generation>;

  /** The same for a generation that is built before it is queried. An unfinished build is resumed. */
  build(id: GenerationId, collections: readonly Collection[], log: string): Promise<Build>;

  /** Opens a generation, built or not, read-only. Undefined: it does not exist. */
  peek(id: GenerationId): Promise<Peek | undefined>;

  /** Tells the operator what to do if the read models belong to another log. */
  readonly ifOfAnotherLog: string;

  /** How often to poll the pointers. Longer for a server on the network. */
  readonly lookMs: number;

  close(): Promise<void>;
}

/** The state of all generations, and requests from one process to another. */
export interface Registry extends Leases {
  generations(): Promise<readonly GenerationId[]>;

  /**
   * Changes whenever the result of `pointer` or `liveLately` changes, in whichever process, other than by the passing of
   * time; otherwise stays the same. Omitted by stores where it would not be much cheaper than a read.
   */
  readonly pointersToken?: () => number;
  pointer(projection: string, version: number): Promise<Pointer | undefined>;
  /**
   * Compare-and-set: moves the pointer if it still equals `believed` and `to` names no removed generation. Otherwise
   * returns false and changes nothing.
   */
  point(projection: string, version: number, to: Pointer, believed: Pointer | undefined): Promise<boolean>;
  /** The generations that are no longer live, but were within this time: other processes may still read them. */
  liveLately(projection: string, version: number, withinMs: number): Promise<readonly number[]>;

  /** A number for a new generation of this projection and version. Numbers are never reused. */
  nextNumber(projection: string, version: number): Promise<number>;
  /**
   * Atomically marks a generation as removed. Returns false and changes nothing while it is live or a given lease is
   * held. A removed generation is never live or previous again, and once dropped is never created again. `liveLately`
   * still includes it, so that whoever drops it can wait for its last readers.
   */
  markRemoved(id: GenerationId, unless: RemovalRefused): Promise<boolean>;
  /** Marked as removed, dropped or not. Never true of a live one. */
  isRemoved(id: GenerationId): Promise<boolean>;
  /**
   * Permanently deletes the documents of a generation, which no pointer may name. Current readers may continue for a
   * while.
   */
  drop(id: GenerationId): Promise<void>;

  /** Why a generation is damaged, as found by any process. Undefined: it is not known to be. */
  damageOf(id: GenerationId): Promise<string | undefined>;

  /** Asks the process that projects to retry one parked tenant, or all. */
  requestRetry(tenantId?: string): Promise<void>;
  /** May lag slightly behind requests of other processes. */
  retryRequests(): Promise<RetryRequests>;
}

export interface Leases {
  /**
   * Takes or renews a lease: true if `holder` has it now. Leases only avoid duplicate work; correctness depends on
   * `commit` alone. A lease expires after `forMs`, or earlier if the store detects that its holder is gone.
   */
  lease(what: string, holder: string, forMs: number, note?: string): Promise<boolean>;
  release(what: string, holder: string): Promise<void>;
  leaseHolder(what: string): Promise<string | undefined>;
  /** The note that the current holder set last, if the lease is held. */
  leaseNote(what: string): Promise<string | undefined>;
}

export interface GenerationId {
  readonly projection: string;
  readonly version: number;
  readonly generation: number;
}

export const generationName = ({ projection, version, generation }: GenerationId): string =>
  `${projection}_v${version}_${generation}`;

/** Undefined if it is not the name of a generation. */
export const generationNamed = (name: string): GenerationId | undefined => {
  const [, projection, version, generation] = /^([a-z_]+)_v([0-9]+)_([0-9]+)$/.exec(name) ?? [];
  if (projection === undefined) return undefined;
  return { projection, version: Number(version), generation: Number(generation) };
};

export const generationRemoved = (id: GenerationId): Fault =>
  fault('generation_removed', `The generation ${generationName(id)} was removed.`);

export const commitTooLarge = (bytes: number, max: number): Fault =>
  fault('commit_too_large', `A commit of ${bytes} bytes exceeds the maximum of ${max}.`);

export interface Pointer {
  readonly live: number;
  readonly previous?: number;
}

/** What prevents a generation from being removed. */
export interface RemovalRefused {
  /** This lease is held. */
  readonly held: string;
  /** True: being live prevents it. False: its pointer is removed with it. */
  readonly live: boolean;
}

export interface RetryRequests {
  /** The number of requests so far, never reset. */
  readonly count: number;
  /** The tenant of the last one. Undefined: all tenants. */
  readonly tenantId?: string;
}

export interface Scanner {
  /**
   * The documents of a collection, of all tenants, ordered by tenant and key, starting after `after`; without a key,
   * with the first one of that tenant. Well-formed texts are ordered by their UTF-8 bytes.
   */
  scan(
    collection: string,
    limit: number,
    after?: { tenantId: string; key?: string },
  ): Promise<readonly Scanned[]>;
}

/** A read-only view of a generation, built or not. Only the collections `PARKED` and `STREAMS` can be scanned. */
export interface Peek extends Scanner {
  readonly id: GenerationId;
  control(): Promise<Control>;
}

/** What events are projected into. */
export interface Target extends Peek {
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

  /**
   * A faster, store-specific way to find the `differences` of a whole collection. Undefined if the other generation is
   * in another kind of store.
   */
  readonly ownDifferences?: (rebuilt: Generation, collection: string) => AsyncIterable<Compared> | undefined;
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
export interface Reader extends Questions, Scanner {
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

export interface Scanned {
  readonly tenantId: string;
  readonly key: string;
  readonly document: Document;
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
