import type { Carried, Document, Reader } from '../../projections/projector';
import type { Head, Position } from '../event-log/event-log';
import { fault } from '../fault';

/**
 * A store of read models. Everything in it can be made again from the log. Every adapter keeps every promise on this
 * page, and `test/read-models/contract` checks each of them.
 *
 * A set is all documents of all projectors of one version of the program, with one control state and, for every tenant,
 * its progress: how far the tenant is shown. Any number of processes may commit tenants to a set at once. A rebuild
 * builds another set and then names it as the successor in the control state of the former one. That freezes the former
 * set and redirects every reader at once: whoever finds `next` goes on there. The set at the end of this chain is live. A
 * root for each version says where to begin. It is a hint: it moves only forward along the chain.
 *
 * So a read of a tenant never goes back in time, in any process: a set commits tenants only while it has no successor, the
 * progress of a tenant never decreases, and a successor has applied everything that was applied in the former set when it
 * is named.
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

  /** Makes an empty set that nobody reads yet. Only this process may write to it before it is named. */
  create(log: string): Promise<ReadModelSet>;

  /**
   * The only switch: names `built` as the successor of `former`, or as the first set of its version where `live` finds
   * none. While nobody can commit to `former`, it calls `follow` with the furthest position that was ever committed there;
   * if that rejects, so does this. Others wait for a moment, and go on there if this fails or its process falls silent.
   * False, having changed nothing: another set has succeeded `former`, or `built` is to be removed, or is behind even after
   * `follow`, or its silence was taken for its end. True also if `built` had succeeded `former` before the call. Syncs what
   * it wrote.
   */
  succeed(
    built: ReadModelSet,
    former: ReadModelSet | undefined,
    options?: {
      /** Applies everything up to this position to `built`, and refuses the switch by rejecting. */
      readonly follow?: (furthest: Position | undefined) => Promise<void>;
      /** Switch even if `former` is further: the log does not hold its events any more. */
      readonly evenIfBehind?: boolean;
    },
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

  /** Says who follows the log in this version, where several machines may. Undefined: whoever appends follows. */
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

/** The control state of a set: how far the log was followed, and what comes after it. */
export interface Control {
  /** Everything up to here is applied, or waits behind the mark of its parked tenant. Undefined: nothing is. */
  readonly to?: Head;
  /** The identity of the log that it is made from. */
  readonly log: string;
  /** How many tenants are parked in it. */
  readonly marks: number;
  /** When its builder last said that it is at work, by the clock of the store. */
  readonly renewedAt: string;
  /** The set that takes its place. */
  readonly next?: string;
  readonly supersededAt?: string;
  /** It is being removed: nobody may read it, write to it or make it a successor. */
  readonly removed?: true;
}

/** How far a tenant is shown in a set. */
export interface Progress {
  /** The last revisions applied of its two streams, or -1. */
  readonly tenant: number;
  readonly activity: number;
  /** The last event applied: everything of this tenant up to it is. Empty: nothing is. */
  readonly position: Position;
  /** The documents of the carried collections. */
  readonly carried?: Carried;
  /** It stays there until this mark goes. */
  readonly parked?: ParkedTenant;
}

/** Why a tenant is parked in a set. */
export interface ParkedTenant {
  readonly tenant_id: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly position: Position;
  /** When that event was recorded. Everything before it has been applied. */
  readonly recorded_at: string;
  /** The event itself is bad, or events are missing before it, or it stands before one that was applied. */
  readonly cause: 'bad_event' | 'missing_events' | 'out_of_order';
  readonly reason: string;
  readonly since: string;
  /** The version of the program that failed. Another version retries automatically. */
  readonly program: string;
}

export interface ReadModelSet extends Reader {
  readonly id: string;

  /** Rejects with `read_model_set_removed` if the set is gone. */
  control(): Promise<Control>;

  /** The last event, in the order of the log, that was ever committed here, of whichever tenant; never before `to`. */
  furthest(): Promise<Head | undefined>;

  /** In the order of the tenants. Undefined: nothing of this tenant was applied. */
  progress(tenantIds: readonly string[]): Promise<readonly (Progress | undefined)[]>;

  /** Parked tenants, ordered by their ids; the cost does not grow with the others. */
  parked(limit: number, afterTenant?: string): Promise<readonly ParkedTenant[]>;

  /** The documents of a collection, of all tenants, ordered by tenant and key (by their UTF-8 bytes). */
  scan(collection: string, limit: number, after?: ScanStart): Promise<readonly Scanned[]>;

  /** Documents of any tenants, in the order of the keys. Inside `work`: as of the progress that `advance` was given. */
  load(keys: readonly DocumentKey[]): Promise<readonly (Document | undefined)[]>;

  /**
   * Atomically commits what `work` makes of the tenants whose progress is still the one in `before`. `work` gets these
   * tenants, and returns at most one commit for each. Whoever wins has read exactly the state before, so a repeated
   * batch, a crash at any point and any number of others who do the same are harmless.
   *
   * `done`: what `work` returned for this tenant, if anything, is committed, visible to every later read in any process.
   * `overtaken`: nothing of it was written; another process has committed this tenant, or is about to.
   * `superseded`: the set has a successor or is to be removed; nothing was written, or only some tenants whose commits
   * were made before that. If `work` rejects, so does this, and nothing was written. If it rejects otherwise, what was
   * written is not known; the progress tells.
   *
   * `to` is written only if it is further and no tenant was overtaken. So whoever moves it names every tenant with an
   * event up to there that may not be applied yet, those that are parked too.
   *
   * An adapter may run `work` under a lock of its file: it must await nothing but microtasks, `load` and `lastOf`.
   */
  advance(
    before: ProgressBefore,
    work: (tenantIds: readonly string[]) => Promise<readonly TenantCommit[]>,
    to?: Head,
  ): Promise<Advanced>;

  /** The builder says that it is at work. False: the set is to be removed, so the build must start over. */
  renew(): Promise<boolean>;

  /** Ends a build: makes the indexes that number no lines and syncs everything. Queries before it may be slow. */
  finish(): Promise<void>;
}

export type Advanced = 'superseded' | ReadonlyMap<string, 'done' | 'overtaken'>;

/** What one advance of a set commits of one tenant. */
export interface TenantCommit {
  readonly tenantId: string;
  readonly writes: readonly Write[];
  readonly progress: Progress;
  /** The last event applied. Undefined: the tenant is only parked, or freed. */
  readonly head: Head | undefined;
  /**
   * Where the mark of a parked tenant goes: both of its streams were read up to here. If `to` is further by now, the
   * tenant counts as overtaken.
   */
  readonly readUpTo?: Position;
}

export interface DocumentKey {
  readonly tenantId: string;
  readonly collection: string;
  readonly key: string;
}

export interface Write extends DocumentKey {
  /** Undefined deletes it. */
  readonly document: Document | undefined;
  /** There was none before. If there was, `advance` rejects with `document_exists` and has written nothing. */
  readonly isNew: boolean;
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

/** Whether it is the same state of a tenant: its documents are equal then, too. */
export const isSameProgress = (one: Progress | undefined, other: Progress | undefined): boolean =>
  one?.position === other?.position &&
  one?.tenant === other?.tenant &&
  one?.activity === other?.activity &&
  one?.parked?.event_id === other?.parked?.event_id &&
  one?.parked?.since === other?.parked?.since &&
  one?.parked?.program === other?.parked?.program;

export type ProgressBefore = ReadonlyMap<string, Progress | undefined>;

/** Whether more of a tenant may wait than was read by whoever frees it. */
export const isFreedTooEarly = (
  before: Progress | undefined,
  { progress, readUpTo = '' }: TenantCommit,
  to: Head | undefined,
): boolean =>
  before?.parked !== undefined && progress.parked === undefined && (to?.position ?? '') > readUpTo;

/** By how many a commit changes the number of parked tenants. */
export const marksChangedBy = (before: Progress | undefined, { progress }: TenantCommit): number =>
  Number(progress.parked !== undefined) - Number(before?.parked !== undefined);

/** The later one. */
export const furtherOf = (one: Head | undefined, other: Head | undefined): Head | undefined =>
  (other?.position ?? '') > (one?.position ?? '') ? other : one;

/** The documents with these numbers, in their order. None may be missing. */
export const inOrderOf = (
  numbers: readonly number[],
  found: readonly Document[],
  field: string,
  what: () => string,
): readonly Document[] => {
  const byNumber = new Map(found.map((document) => [document[field], document] as const));
  const rows = numbers.map((number) => byNumber.get(number)).filter((row) => row !== undefined);
  if (rows.length === numbers.length) return rows;
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
