import type { Collection, Document, Reader } from '../../projections/projector';
import type { Position } from '../event-log/event-log';

/**
 * Where read models are kept. Everything here can be rebuilt from the log. Every adapter keeps every promise on this
 * page; `test/read-models/contract.ts` asks each of them for each promise.
 *
 * A projection is kept as generations, `<name>_v<version>_<generation>`. A pointer per name and version says which one
 * answers questions, so that a rebuild fills another one and then moves the pointer.
 */
export interface ReadModels {
  /**
   * Opens a generation and makes it, empty and bound to this log, if it is not there; one that is removed is not made
   * again (`generation_removed`). `inBulk` puts off what only
   * questions need, so that it is filled faster: `finish` makes up for it, and so does the next `open` without it. Until
   * then it can be filled, and asked for its control state, for documents to `load`, and for its parked tenants.
   */
  open(
    id: GenerationId,
    collections: readonly Collection[],
    log: string,
    inBulk?: boolean,
  ): Promise<Generation>;
  generations(): Promise<readonly GenerationId[]>;
  /** Closes a generation in this process. It must not be used any more. */
  shut(id: GenerationId): Promise<void>;
  /** Removes a generation for good. Nothing must point at it. Others who have it open can go on reading it. */
  drop(id: GenerationId): Promise<void>;

  pointer(projection: string, version: number): Promise<Pointer | undefined>;
  /**
   * Moves the pointer if it is still where the caller believes and names nothing that is removed; false, and nothing
   * changed, otherwise.
   */
  point(projection: string, version: number, to: Pointer, believed: Pointer | undefined): Promise<boolean>;
  /** The generations that are not live now, but were within the last so many milliseconds: others may still read them. */
  liveLately(projection: string, version: number, withinMs: number): Promise<readonly number[]>;

  /**
   * Decides in one step that a generation goes. False, and nothing changed, while it is live or anybody holds a certain
   * lease. From then on it is neither previous nor pointed at again, and once it is dropped it is not made again.
   */
  markRemoved(id: GenerationId, unless: RemovalRefused): Promise<boolean>;
  /** It is to go, or gone. Never true of one that is live. */
  isRemoved(id: GenerationId): Promise<boolean>;
  /** A number for a new generation of this projection and version. None is given twice. */
  nextNumber(projection: string, version: number): Promise<number>;

  /**
   * Takes or renews a lease: true if it is now held by `holder`. A lease only saves work, it protects nothing: that is
   * what `commit` is for. It ends by itself after `forMs`, or earlier when the store can see that its holder is gone.
   */
  lease(what: string, holder: string, forMs: number, note?: string): Promise<boolean>;
  release(what: string, holder: string): Promise<void>;
  leaseHolder(what: string): Promise<string | undefined>;
  /** What the holder of a lease last said about its work, if anybody holds it. */
  leaseNote(what: string): Promise<string | undefined>;

  /** Asks for something: another try of whoever projects, another number. */
  ask(what: string, note?: string): Promise<void>;
  asked(what: string): Promise<Asked>;

  close(): Promise<void>;
}

/** Askings are counted, for ever; the note is that of the last one. */
export interface Asked {
  readonly times: number;
  readonly note: string;
}

export interface GenerationId {
  readonly projection: string;
  readonly version: number;
  readonly generation: number;
}

export const generationName = ({ projection, version, generation }: GenerationId): string =>
  `${projection}_v${version}_${generation}`;

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

export interface Generation extends Reader {
  readonly id: GenerationId;

  /**
   * Another number after every change of what this generation shows, whoever made it; the same number while there was
   * none. Left out by a store that cannot tell at a fraction of the cost of a read.
   */
  readonly version?: () => number;

  control(): Promise<Control>;

  /** The documents as of the control state or later, in the order asked for. */
  load(keys: readonly DocumentKey[]): Promise<readonly (Document | undefined)[]>;

  /**
   * Writes all the documents and moves the control state to `n + 1`, wholly or not at all, and only if `n` is still the
   * current one: false if it is not. So whoever wins has read exactly state `n`; a redelivered batch, a crash at any
   * instruction and a second or stale projector do no harm.
   *
   * With `more` the caller has more at hand: showing it to others, and keeping it should this process die, may be put off
   * until the next commit without `more`, or until `settle`; `control` and `load` of this process see it at once. If the
   * next commit fails, what was put off is lost with it: the control state says so.
   */
  commit(n: number, to: Checkpoint | undefined, writes: readonly Write[], more?: boolean): Promise<boolean>;

  /** Shows and keeps what commits have put off. */
  settle(): Promise<void>;

  /** The control state and documents of one and the same moment, in the order asked for. */
  snapshot(keys: readonly DocumentKey[]): Promise<Snapshot>;

  /** Makes up for what a generation opened in bulk has put off. */
  finish(): Promise<void>;

  /**
   * All documents of a collection, of all tenants, ordered by tenant and key, from just after one; without a key from
   * the first one of a tenant.
   */
  scan(
    collection: string,
    limit: number,
    after?: { tenantId: string; key?: string },
  ): Promise<readonly Scanned[]>;

  /**
   * The documents of a collection as they lie in this store, stretch by stretch. Whatever the order is, it holds as long
   * as a document is there, new documents do not change it, and fillings from the same log have it in common as far as
   * possible: so equal ones are compared without any seeking.
   */
  lying(collection: string, stretch: Stretch): Promise<Lying>;

  /**
   * Does another generation of the same projection, in a store of the same kind, hold the same documents in the same
   * stretch? Yes is certain; no may also mean that they lie in another order, or their members do.
   */
  matches(other: Generation, collection: string, stretch: Omit<Stretch, 'tenantId'>): Promise<StretchMatch>;
}

/** The position up to which events are in, and the id of the event there. */
export interface Checkpoint {
  readonly position: Position;
  readonly eventId: string;
}

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
  /** Whoever writes it knows that it is not there yet: nobody need look. */
  readonly isNew?: boolean;
}

export interface Scanned {
  readonly tenantId: string;
  readonly key: string;
  readonly document: Document;
}

/** A place between documents as they lie. Only stores of the same kind know what it means. */
export type Place = string;

export interface Stretch {
  /** It is cut after so many documents. */
  readonly limit: number;
  /** It begins just after this place, or at the first document. */
  readonly after?: Place | undefined;
  /** It ends at this place, or at the last document. */
  readonly upTo?: Place | undefined;
  /** Only documents of this tenant. Places are then places among these. */
  readonly tenantId?: string | undefined;
}

export interface Lying {
  readonly documents: readonly Scanned[];
  /** Where it was cut. Undefined: it was not. */
  readonly cutAt?: Place;
}

export interface StretchMatch {
  /** How many there are here. */
  readonly documents: number;
  readonly isSame: boolean;
  /** Where it was cut. Undefined: it was not. */
  readonly cutAt?: Place;
}

/** Every generation has this collection besides its projector's own: one document per parked tenant. */
export const PARKED = 'parked';

/** And this one: per tenant, the last revision of each of its streams that is in. Both are found at any time. */
export const STREAMS = 'streams';
