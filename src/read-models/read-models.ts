import type { Collection, Document, Reader as Questions } from '../../projections/projector';
import type { Head, Position } from '../event-log/event-log';
import { fault, type Fault } from '../fault';

/**
 * Where read models are kept. Everything here can be rebuilt from the log. Every adapter keeps every promise on this
 * page; `test/read-models/contract` asks each of them for each promise.
 *
 * A projection is kept as generations, `<name>_v<version>_<generation>`. A pointer per name and version says which one
 * answers questions, so that a rebuild builds another one and then moves the pointer.
 *
 * A document is any JSON object. It comes back as it was written, whatever its texts are: a NUL and half of a surrogate
 * pair are text like any other, in documents, in keys and in indexed values. No two texts are taken for the same.
 *
 * A store that cannot be reached or written rejects with `read_models_unavailable`. Its message says where the store is.
 */
export interface ReadModels extends Registry {
  /**
   * Opens a generation, and makes it, empty and bound to this log, if it does not exist. A build that nobody finished is
   * finished first. One that was removed is not made again: `generation_removed`.
   */
  open(id: GenerationId, collections: readonly Collection[], log: string): Promise<Generation>;

  /** The same for a generation that is built before anybody asks it anything. An unfinished build is continued. */
  build(id: GenerationId, collections: readonly Collection[], log: string): Promise<Build>;

  /** Looks at a generation, built or not, without making or changing anything. Undefined: it does not exist. */
  peek(id: GenerationId): Promise<Peek | undefined>;

  /** What an operator can do when the read models turn out to be those of another log. */
  readonly ifOfAnotherLog: string;

  /** How often it is worth looking whether a pointer has moved: a server on the network should be left alone longer. */
  readonly lookMs: number;

  close(): Promise<void>;
}

/** What is known about generations, and what processes tell each other about them. */
export interface Registry extends Leases {
  generations(): Promise<readonly GenerationId[]>;

  /**
   * Another number after every change that `pointer` and `liveLately` would show, whoever made it, but for the passing of
   * time; the same number while nothing has changed. Left out by a store that cannot tell at a fraction of the cost of a
   * read.
   */
  readonly pointersToken?: () => number;
  pointer(projection: string, version: number): Promise<Pointer | undefined>;
  /**
   * Moves the pointer if it is still where the caller believes and names nothing that is removed; false, and nothing
   * changed, otherwise.
   */
  point(projection: string, version: number, to: Pointer, believed: Pointer | undefined): Promise<boolean>;
  /** The generations that are not live now, but were within this time: others may still read them. */
  liveLately(projection: string, version: number, withinMs: number): Promise<readonly number[]>;

  /** A number for a new generation of this projection and version. None is given twice. */
  nextNumber(projection: string, version: number): Promise<number>;
  /**
   * Decides in one step that a generation goes. False, and nothing changed, while it is live or anybody holds a certain
   * lease. From then on it is neither previous nor pointed at again, and once it is dropped it is not made again. If it was
   * live lately it still was: whoever drops it waits for those who may still read it.
   */
  markRemoved(id: GenerationId, unless: RemovalRefused): Promise<boolean>;
  /** It is to go, or gone. Never true of one that is live. */
  isRemoved(id: GenerationId): Promise<boolean>;
  /** Removes the documents of a generation for good. Nothing must point at it. Who reads it now may go on for a while. */
  drop(id: GenerationId): Promise<void>;

  /** Asks whoever projects to retry a parked tenant, or all of them. */
  requestRetry(tenantId?: string): Promise<void>;
  /** What another process has asked for a moment ago may be missing. */
  retryRequests(): Promise<RetryRequests>;
}

export interface Leases {
  /**
   * Takes or renews a lease: true if it is now held by `holder`. A lease only saves work, it protects nothing: that is
   * what `commit` is for. It ends by itself after `forMs`, or earlier when the store can see that its holder is gone.
   */
  lease(what: string, holder: string, forMs: number, note?: string): Promise<boolean>;
  release(what: string, holder: string): Promise<void>;
  leaseHolder(what: string): Promise<string | undefined>;
  /** What the holder of a lease last reported about its work, if anybody holds it. */
  leaseNote(what: string): Promise<string | undefined>;
}

export interface GenerationId {
  readonly projection: string;
  readonly version: number;
  readonly generation: number;
}

export const generationName = ({ projection, version, generation }: GenerationId): string =>
  `${projection}_v${version}_${generation}`;

/** Undefined: that is not the name of a generation. */
export const generationNamed = (name: string): GenerationId | undefined => {
  const [, projection, version, generation] = /^([a-z_]+)_v([0-9]+)_([0-9]+)$/.exec(name) ?? [];
  if (projection === undefined) return undefined;
  return { projection, version: Number(version), generation: Number(generation) };
};

export const generationRemoved = (id: GenerationId): Fault =>
  fault('generation_removed', `The generation ${generationName(id)} is removed.`);

export const commitTooLarge = (bytes: number, max: number): Fault =>
  fault('commit_too_large', `A commit of ${bytes} bytes is more than the ${max} that are allowed.`);

export interface Pointer {
  readonly live: number;
  readonly previous?: number;
}

/** What keeps a generation from being removed. */
export interface RemovalRefused {
  /** Somebody holds this lease. */
  readonly held: string;
  /** It is live. If that does not matter, its pointer goes with it. */
  readonly live: boolean;
}

export interface RetryRequests {
  /** Requests are counted, for ever. */
  readonly count: number;
  /** The tenant of the last one. Undefined: all tenants. */
  readonly tenantId?: string;
}

/** Reads all documents of a collection. */
export interface Scanner {
  /**
   * The documents of a collection, of all tenants, ordered by tenant and key, from just after one; without a key from
   * the first one of a tenant. The order is that of the UTF-8 bytes, wherever a text has such bytes.
   */
  scan(
    collection: string,
    limit: number,
    after?: { tenantId: string; key?: string },
  ): Promise<readonly Scanned[]>;
}

/** A generation as anybody may look at it at any time. Only the collections `PARKED` and `STREAMS` can be scanned. */
export interface Peek extends Scanner {
  readonly id: GenerationId;
  control(): Promise<Control>;
}

/** Where events are projected to. */
export interface Target extends Peek {
  /** The most bytes that the documents of one commit may have, as JSON in UTF-8 with their keys. */
  readonly maxCommitBytes: number;

  /** The documents as of the control state or later, in the order asked for. */
  load(keys: readonly DocumentKey[]): Promise<readonly (Document | undefined)[]>;

  /**
   * Writes all the documents and moves the control state to `n + 1`, wholly or not at all, and only if `n` is still the
   * current one: false if it is not. So whoever wins has read exactly state `n`; a redelivered batch, a crash at any
   * instruction and a second or stale projector do no harm. More than `maxCommitBytes` are refused, and nothing is
   * written: `commit_too_large`.
   */
  commit(n: number, to: Checkpoint | undefined, writes: readonly Write[]): Promise<boolean>;
}

/**
 * A generation that can be asked questions. When a commit resolves it is visible: whoever asks after that, in whichever
 * process, sees all of it, and it survives the end of this process.
 */
export interface Generation extends Target {
  readonly reader: Reader;

  /** The control state and documents of one and the same moment, in the order asked for. */
  snapshot(keys: readonly DocumentKey[]): Promise<Snapshot>;

  /**
   * `differences` of a whole collection as only this store can find them, faster. Undefined where the other generation is
   * kept in another kind of store.
   */
  readonly ownDifferences?: (rebuilt: Generation, collection: string) => AsyncIterable<Compared> | undefined;
}

/**
 * A generation that nobody reads while it is built. Its own `control` and `load` see a commit when it resolves; others
 * may see it later, and the last commits may be lost with this process: the control state tells which.
 */
export interface Build extends Target {
  /** From then on it answers questions. The build must not be used any more. */
  finish(): Promise<Generation>;
}

/** Answers questions, and never writes. */
export interface Reader extends Questions, Scanner {
  /** Everything up to this position is shown. Undefined: nothing is. */
  applied(): Promise<Position | undefined>;

  /**
   * Another number after every change of what this reader shows, whoever made it; the same number while there was none.
   * Left out by a store that cannot tell at a fraction of the cost of a read.
   */
  readonly changeToken?: () => number;

  /**
   * The same, but only as the last calls of `applied` have found it: another number once one of them has found a change of
   * what this reader shows. For stores that have no `changeToken`.
   */
  readonly appliedToken?: () => number;
}

/** The position up to which events are in, and the id of the event there. */
export type Checkpoint = Head;

export interface Control {
  /** Counts commits. */
  readonly n: number;
  readonly to?: Checkpoint;
  /** What questions already see. It may trail `to` where a commit and its documents are not one step. */
  readonly applied?: Position;
  /** The identity of the log it is built from. */
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
  /** Undefined removes it. */
  readonly document: Document | undefined;
}

export interface Scanned {
  readonly tenantId: string;
  readonly key: string;
  readonly document: Document;
}

/** One step of a comparison. */
export interface Compared {
  /** The number of documents of the live generation that were compared in this step. */
  readonly documents: number;
  readonly suspects: readonly Suspect[];
}

/** A document that may differ. */
export interface Suspect extends DocumentKey {
  /** Where it was seen. One that both have may be seen on either side, or on both. */
  readonly seenIn: 'live' | 'rebuilt';
}

/** Every generation has this collection besides its projector's own: one document per parked tenant. */
export const PARKED = 'parked';

/** And this one: per tenant, the last revision of each of its streams that is in. */
export const STREAMS = 'streams';

/** They come last: they say how much of a stream is in. */
export const COMMON_COLLECTIONS: readonly Collection[] = [PARKED, STREAMS].map((name) => ({
  name,
  indexes: {},
}));
