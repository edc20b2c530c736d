import type { Collection, Document, Query, Reader } from '../../projections/projector';
import type { Head } from '../event-log/event-log';
import { fault } from '../fault';

/**
 * A store of read models. Everything in it can be made again from the log. Every adapter keeps every promise on this
 * page, and `test/read-models/contract` checks each of them.
 *
 * A set is all documents of all projectors of one version of the program, with one control state. A rebuild builds
 * another set and then names it as the successor in the control state of the former one. That freezes the former set and
 * redirects every reader at once: whoever finds `next` goes on there. The set at the end of this chain is live. A root
 * for each version says where to begin. It is a hint: it moves only forward along the chain.
 *
 * So a read never goes back in time, in any process: a set advances only while it has no successor, its position never
 * decreases, and a successor is at least as far when it is named.
 *
 * A document is any JSON object of well-formed text and is returned as it was written. A store that cannot be reached,
 * read or written rejects with `read_models_unavailable`, and the message says where it is and why.
 */
export interface ReadModels {
  /** Identifies the layout of the store, and the names and versions of all projectors. Each version has its own chain. */
  readonly version: string;

  /**
   * The set at the end of this version's chain, and its control state as read during this call, with `next` absent.
   * Sees every `advance` and `succeed` that was acknowledged before the call, by any process. Undefined: certainly none
   * exists, that is, there is no root, or it leads to a set that does not exist or is no database.
   */
  live(): Promise<LiveSet | undefined>;

  /** Makes an empty set that nobody reads yet. */
  create(log: string): Promise<ReadModelSet>;

  /**
   * The only switch: names `built` as the successor of `former`, or as the first set of its version where `live` finds none.
   * False: another set has succeeded `former`, or `former` has got further than `built`, or `built` is to be removed; nothing was changed.
   * True also if `built` had succeeded `former` before the call. Syncs what it wrote.
   */
  succeed(
    built: ReadModelSet,
    former: ReadModelSet | undefined,
    /** Switch even if `former` is further: the log does not hold its events any more. */
    options?: { readonly evenIfBehind?: boolean },
  ): Promise<boolean>;

  /** All sets of all versions. */
  list(): Promise<readonly SetInfo[]>;

  /**
   * Removes a set. False, having changed nothing: it is on the way from a root to the end of a chain, or it was
   * superseded, or renewed by its builder, within the last minute.
   */
  remove(id: string): Promise<boolean>;

  /** Removes the root of another version, so that its sets can be removed. */
  abandon(version: string): Promise<void>;

  /** Says who projects in this version, where several machines may. Undefined: whoever appends projects. */
  readonly lease?: Lease;

  close(): Promise<void>;
}

/** Avoids duplicate work. Correctness never depends on it. */
export interface Lease {
  /** Takes or renews it. False: another process holds it. */
  hold(): Promise<boolean>;
  release(): Promise<void>;
  /** The name of the process that holds it now. */
  holder(): Promise<string | undefined>;
}

export interface LiveSet {
  readonly set: ReadModelSet;
  readonly control: Control;
}

export interface SetInfo {
  readonly id: string;
  readonly version: string;
  readonly control: Control;
  /** It is at the end of the chain of its version. */
  readonly isLive: boolean;
}

/** The control state of a set: how far it is, and what comes after it. */
export interface Control {
  /** The number of commits. */
  readonly n: number;
  /** The last event that the set shows. Undefined: none yet. */
  readonly to?: Head;
  /** The identity of the log that it is made from. */
  readonly log: string;
  /** How many tenants are parked in it. */
  readonly parked: number;
  /** When its builder last said that it is at work, by the clock of the store. */
  readonly renewedAt: string;
  /** The set that takes its place. */
  readonly next?: string;
  readonly supersededAt?: string;
  /** It is being removed: nobody may read it, write to it or make it a successor. */
  readonly removed?: true;
}

export interface ReadModelSet extends Reader {
  readonly id: string;

  /** Rejects with `read_model_set_removed` if the set is gone. */
  control(): Promise<Control>;

  /** The documents of a collection, of all tenants, ordered by tenant and key (by their UTF-8 bytes). */
  scan(collection: string, limit: number, after?: ScanStart): Promise<readonly Scanned[]>;

  /** Inside `advance`: the documents as of the control state that `work` was given, in the order of the keys. */
  load(keys: readonly DocumentKey[]): Promise<readonly (Document | undefined)[]>;

  /**
   * Runs `work` on the newest control state and atomically commits what it returns together with `n + 1`. Whoever wins
   * `n + 1` has read exactly `n`, so a repeated batch, a crash at any point and a second projector are harmless.
   *
   * `done`: committed, visible to every later read in any process; or `work` returned nothing, and nothing was written.
   * `overtaken`: another process committed first; nothing was written. `superseded`: the set has a successor or is to be
   * removed; nothing was written. If `work` rejects, so does this, and nothing was written.
   *
   * An adapter may run `work` under a lock of its file: it must await nothing but microtasks and `load`.
   */
  advance(work: (now: Control) => Promise<Commit | undefined>): Promise<Advanced>;

  /** The builder says that it is at work. False: the set is to be removed, so the build must start over. */
  renew(): Promise<boolean>;

  /** Ends a build: makes the secondary indexes and syncs everything. Queries before it may be slow. */
  finish(): Promise<void>;
}

export type Advanced = 'done' | 'overtaken' | 'superseded';

/** What one advance of a set commits. */
export interface Commit {
  /** The last event that is applied with it. Undefined: the position stays. */
  readonly to?: Head;
  readonly writes: readonly Write[];
  readonly parked: number;
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

/** Where a scan begins: after this document or, without a key, with the first one of the tenant. */
export interface ScanStart {
  readonly tenantId: string;
  readonly key?: string;
}

/** A document as JSON. Equal texts are equal documents; documents whose members are in another order are equal too. */
export interface Scanned extends Required<ScanStart> {
  readonly text: string;
}

/** A collection that every set has besides those of its projectors: one document per parked tenant. */
export const PARKED = 'parked';

/** Another one: per tenant and kind of stream, the last revision that was applied. */
export const STREAMS = 'streams';

export const COMMON_COLLECTIONS: readonly Collection[] = [PARKED, STREAMS].map((name) => ({
  name,
  indexes: {},
}));

/** The rows that a query found, of which none may be missing if it says so. */
export const allThere = <T>(rows: readonly T[], query: Query, what: () => string): readonly T[] => {
  if (query.areAllThere !== true || rows.length >= query.limit) return rows;
  const why = `Documents of ${what()} are missing. Rebuild the read models: tenant-ledger projections rebuild`;
  throw fault('read_models_unavailable', why);
};

const PAGE = 500;

/** The documents of a collection, of one tenant or all, ordered by tenant and key; read page by page. */
export async function* rowsOf(
  set: Pick<ReadModelSet, 'scan'>,
  collection: string,
  tenantId?: string,
): AsyncGenerator<Scanned, undefined> {
  let after: ScanStart | undefined = tenantId === undefined ? undefined : { tenantId };
  do {
    const page: readonly Scanned[] = await set.scan(collection, PAGE, after);
    for (const row of page) {
      if (tenantId !== undefined && row.tenantId !== tenantId) return;
      yield row;
    }
    after = page.at(-1);
  } while (after !== undefined);
}

/** Removes what earlier rebuilds have left. The store keeps what may still be in use. */
export const removeLeftovers = async (readModels: ReadModels): Promise<void> => {
  for (const { id, version, isLive } of await readModels.list())
    if (version === readModels.version && !isLive) await readModels.remove(id);
};
