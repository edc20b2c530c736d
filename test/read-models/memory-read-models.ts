import { randomUUID } from 'node:crypto';
import type { Collection } from '../../projections/projector';
import { fault, type Fault } from '../../src/fault';
import type { Advanced, Control, ReadModels, ReadModelSet, SetInfo } from '../../src/read-models/read-models';
import { TIMES } from '../../src/times';
import { memoryDocuments, type Documents } from './memory-documents';

interface StoredSet {
  readonly version: string;
  control: Control;
  readonly documents: Documents;
}

/** What several adapters share, as several processes share a folder or a database. */
export interface MemoryStore {
  readonly roots: Map<string, string>;
  readonly sets: Map<string, StoredSet>;
  /** The sets that are held, and by whom. */
  readonly holders: Map<string, object>;
}

export const memoryStore = (): MemoryStore => ({ roots: new Map(), sets: new Map(), holders: new Map() });

/** Frees what a process holds, as its end does. */
export const letGoOfAll = ({ holders }: MemoryStore, holder: object): void => {
  for (const [id, by] of holders) if (by === holder) holders.delete(id);
};

/** Ways to get it wrong, each of which the model of the chain must notice. */
export type Mistake =
  /** A switch moves the root only. */
  | 'pointer'
  /** A successor is compared with the former set before the switch, not by it. */
  | 'late'
  /** A set is advanced although it has a successor. */
  | 'thaw'
  /** The root is moved without comparing. */
  | 'root'
  /** What is removed is neither marked, nor is the mark looked at. */
  | 'unmarked'
  /** The way is walked before the set that goes is held. */
  | 'early'
  /** The successor is not held while it is named. */
  | 'loose';

interface MemoryOptions {
  readonly collections: readonly Collection[];
  readonly version?: string;
  readonly store?: MemoryStore;
  readonly now?: () => number;
  readonly graceMs?: number;
  /** Called between the operations of the store, so that tests can let others in or end the work. */
  readonly between?: () => Promise<void>;
  /** The process that holds sets. */
  readonly holder?: object;
  readonly mistake?: Mistake | undefined;
}

interface Memory extends Required<Omit<MemoryOptions, 'collections' | 'mistake'>> {
  readonly documents: ReturnType<typeof memoryDocuments>;
  is(mistake: Mistake): boolean;
}

const setRemoved = (id: string): Fault => fault('read_model_set_removed', `There is no set ${id} any more.`);

const controlOf = ({ store }: Memory, id: string): Control | undefined => {
  const control = store.sets.get(id)?.control;
  return control?.removed === true ? undefined : control;
};

/** One conditional write: nobody else runs in the middle of it. */
const put = ({ store }: Memory, id: string, change: Partial<Control>): void => {
  const set = store.sets.get(id);
  if (set !== undefined) set.control = { ...set.control, ...change };
};

const timeOf = ({ now }: Memory): string => new Date(now()).toISOString();

/** Runs the work while this process alone holds the set. */
const holding = async <T>(memory: Memory, id: string, work: () => Promise<T>): Promise<T> => {
  const { store, holder, between } = memory;
  while (store.holders.has(id)) await between();
  store.holders.set(id, holder);
  try {
    return await work();
  } finally {
    if (store.holders.get(id) === holder) store.holders.delete(id);
  }
};

/** Only from where it was found, and so only forward. */
const moveRoot = (
  { store: { roots }, version, is }: Memory,
  from: string | undefined,
  to: string,
): boolean => {
  if (roots.get(version) !== from && !is('root')) return false;
  roots.set(version, to);
  return true;
};

const advance = async (
  memory: Memory,
  id: string,
  work: Parameters<ReadModelSet['advance']>[0],
): Promise<Advanced> => {
  const { between, is, documents, store } = memory;
  await between();
  const before = controlOf(memory, id);
  if (before === undefined || before.next !== undefined) return 'superseded';
  const change = await work(before);
  await between();
  const now = controlOf(memory, id);
  if (now === undefined || (now.next !== undefined && !is('thaw'))) return 'superseded';
  if (now.n !== before.n) return 'overtaken';
  if (change === undefined) return 'done';
  const { to = before.to, writes, parked } = change;
  documents.write((store.sets.get(id) as StoredSet).documents, writes);
  put(memory, id, { n: before.n + 1, parked, ...(to === undefined ? {} : { to }) });
  return 'done';
};

const setOf = (memory: Memory, id: string): ReadModelSet => {
  const { documents, between, store } = memory;
  const stored = (): Documents => {
    const found = store.sets.get(id);
    if (found === undefined) throw setRemoved(id);
    return found.documents;
  };
  return {
    id,
    control: async () => {
      await between();
      const control = controlOf(memory, id);
      if (control === undefined) throw setRemoved(id);
      return control;
    },
    get: async (tenantId, collection, key) => documents.get(stored(), { tenantId, collection, key }),
    find: async (...scope) => documents.find(stored(), ...scope),
    countsBefore: async (...scope) => documents.countsBefore(stored(), ...scope),
    scan: async (...scope) => documents.scan(stored(), ...scope),
    load: async (keys) => keys.map((key) => documents.get(stored(), key)),
    advance: (work) => advance(memory, id, work),
    renew: async () => {
      await between();
      if (controlOf(memory, id) === undefined) return false;
      put(memory, id, { renewedAt: timeOf(memory) });
      return true;
    },
    finish: async () => undefined,
  };
};

/** Begins where this process was last, or at the root, and moves the root behind itself. */
const livingIn = (memory: Memory): ReadModels['live'] => {
  const { store, version, between, is } = memory;
  let last: string | undefined;
  const follow = async (start: string) => {
    for (let id = start; ;) {
      await between();
      const control = controlOf(memory, id);
      if (control === undefined) return undefined;
      if (control.next === undefined) {
        if (id !== start || is('root')) await between();
        if (id !== start || is('root')) moveRoot(memory, start, id);
        last = id;
        return { set: setOf(memory, id), control };
      }
      id = control.next;
    }
  };
  return async () => {
    const found = last === undefined ? undefined : await follow(last);
    if (found !== undefined) return found;
    for (;;) {
      await between();
      const root = store.roots.get(version);
      if (root === undefined) return undefined;
      const live = await follow(root);
      if (live !== undefined) return live;
      await between();
      if (store.roots.get(version) === root) return undefined;
    }
  };
};

const isBehind = (built: Control | undefined, former: Control | undefined): boolean =>
  (built?.to?.position ?? '') < (former?.to?.position ?? '');

/** Names a successor while it is held: nobody removes it meanwhile. */
const nameSuccessor = async (
  memory: Memory,
  built: string,
  former: string,
  evenIfBehind: boolean,
): Promise<boolean> => {
  const { between, is } = memory;
  const mine = controlOf(memory, built);
  if (mine === undefined && !is('unmarked')) return false;
  await between();
  const left = controlOf(memory, former);
  if (left === undefined) return false;
  if (left.next !== undefined) return left.next === built;
  if (mine !== undefined && isBehind(mine, left) && !evenIfBehind && !is('late')) return false;
  put(memory, former, { next: built, supersededAt: timeOf(memory) });
  await between();
  return true;
};

const succeeding = (memory: Memory, live: ReadModels['live']): ReadModels['succeed'] => {
  const { store, version, between, is } = memory;
  const nameFirst = async (built: string): Promise<boolean> => {
    const root = store.roots.get(version);
    if (root === built) return true;
    if (controlOf(memory, built) === undefined || (await live()) !== undefined) return false;
    return moveRoot(memory, root, built);
  };
  return async ({ id: built }, former, { evenIfBehind = false } = {}) => {
    await between();
    if (former === undefined) return holding(memory, built, () => nameFirst(built));
    const left = controlOf(memory, former.id);
    if ((is('late') || is('pointer')) && isBehind(controlOf(memory, built), left)) return false;
    if (is('late') || is('pointer')) await between();
    if (is('pointer')) return store.roots.set(version, built).has(version);
    const name = () => nameSuccessor(memory, built, former.id, evenIfBehind);
    if (!(await (is('loose') ? name() : holding(memory, built, name)))) return false;
    await between();
    moveRoot(memory, former.id, built);
    return true;
  };
};

/** All sets from the root to the end. Undefined: the way leads nowhere. */
const walk = async (memory: Memory, version: string): Promise<ReadonlySet<string> | undefined> => {
  const way = new Set<string>();
  for (let id = memory.store.roots.get(version); id !== undefined;) {
    way.add(id);
    await memory.between();
    const control = controlOf(memory, id);
    if (control === undefined) return undefined;
    id = control.next;
  }
  return way;
};

const removing = (memory: Memory): ReadModels['remove'] => {
  const { store, now, graceMs, between, is } = memory;
  const isOld = ({ next, supersededAt, renewedAt }: Control): boolean =>
    now() - Date.parse(next === undefined ? renewedAt : (supersededAt ?? renewedAt)) > graceMs;
  /** Returns whether the set may go, and marks it. */
  const mark = async (id: string, { version }: StoredSet, seen?: ReadonlySet<string>): Promise<boolean> => {
    const way = seen ?? (await walk(memory, version));
    const last = store.sets.get(id)?.control;
    if (way === undefined || way.has(id) || last === undefined || !isOld(last)) return false;
    if (!is('unmarked')) put(memory, id, { removed: true });
    return true;
  };
  return async (id) => {
    await between();
    const set = store.sets.get(id);
    if (set === undefined) return true;
    if (set.control.removed !== true) {
      if (!isOld(set.control)) return false;
      const seen = is('early') ? await walk(memory, set.version) : undefined;
      if (is('early')) await between();
      if (!(await holding(memory, id, () => mark(id, set, seen)))) return !store.sets.has(id);
    }
    await between();
    store.sets.delete(id);
    return true;
  };
};

const listing = (memory: Memory): ReadModels['list'] => {
  const { store } = memory;
  return async () => {
    const ways = await Promise.all([...store.roots.keys()].map((version) => walk(memory, version)));
    const ends = new Set(ways.map((way) => [...(way ?? [])].at(-1)));
    return [...store.sets].map(([id, { version, control }]): SetInfo => ({
      id,
      version,
      control,
      isLive: ends.has(id),
    }));
  };
};

/** Read models in memory: the simplest thing that keeps the promises of the port. */
export const memoryReadModels = ({ collections, mistake, ...options }: MemoryOptions): ReadModels => {
  const memory: Memory = {
    version: 'v1',
    store: memoryStore(),
    now: Date.now,
    graceMs: TIMES.graceMs,
    between: async () => undefined,
    holder: {},
    ...options,
    documents: memoryDocuments(collections),
    is: (one) => one === mistake,
  };
  const { store, version } = memory;
  const live = livingIn(memory);
  return {
    version,
    live,
    create: async (log) => {
      const id = randomUUID();
      const control = { n: 0, log, parked: 0, renewedAt: timeOf(memory) };
      store.sets.set(id, { version, control, documents: new Map() });
      return setOf(memory, id);
    },
    succeed: succeeding(memory, live),
    list: listing(memory),
    remove: removing(memory),
    abandon: async (other) => void store.roots.delete(other),
    close: async () => undefined,
  };
};
