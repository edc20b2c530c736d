import type { Collection } from '../../../projections/projector';
import { isoNow } from '../../async/clock';
import { TIMES } from '../../times';
import type { Control, LiveSet, ReadModels } from '../read-models';
import { rootsIn } from './roots';
import { ifRemoved, explaining } from './set-file';
import type { StoredControl } from './set-reader';
import { setsIn, wayFrom, type Entry, type Sets } from './sets-folder';

export interface SqliteOptions {
  /** Created with its first set. */
  readonly folder: string;
  readonly version: string;
  readonly collections: readonly Collection[];
  readonly graceMs?: number;
  /** How long a writer waits for the lock of another process before it rejects with `read_models_busy`. */
  readonly busyMs?: number;
}

type Roots = ReturnType<typeof rootsIn>;

/** The chain is followed all the same if this fails. */
const moveHint = (roots: Roots, version: string, from: string, to: string): void => {
  try {
    roots.move(version, from, to);
  } catch {}
};

/** Begins where this process was last, or at the root, and moves the root behind itself. */
const livingIn = (version: string, { fileOf, lookAt, close }: Sets, roots: Roots) => {
  let last: string | undefined;
  const follow = (start: string): LiveSet | undefined => {
    for (let id = start; ;) {
      const control = lookAt({ version, id }, true);
      if (control === undefined) return undefined;
      if (control.next === undefined) {
        if (id !== start) moveHint(roots, version, start, id);
        // A request that still reads the former set opens it again.
        if (last !== undefined && last !== id) void close(last);
        last = id;
        return { set: fileOf({ version, id }), control };
      }
      id = control.next;
    }
  };
  return (): LiveSet | undefined => {
    const found = last === undefined ? undefined : follow(last);
    if (found !== undefined) return found;
    for (;;) {
      const root = roots.all().get(version);
      const live = root === undefined ? undefined : follow(root);
      if (live !== undefined || roots.all().get(version) === root) return live;
    }
  };
};

const isBehind = ({ to }: Control, { furthest }: StoredControl): boolean =>
  (to?.position ?? '') < (furthest?.position ?? '');

/** The successor is held until it is named, so that nobody removes it. */
const succeedingIn = (version: string, sets: Sets, roots: Roots): ReadModels['succeed'] => {
  const nameFirst = async (built: string): Promise<boolean> => {
    const root = roots.all().get(version);
    if (root === undefined) return roots.add(version, built);
    const { way, isBroken } = wayFrom(root, version, sets);
    if (!isBroken) return root === built;
    const id = way.at(-1) as string;
    await sets.close(id);
    sets.unlink({ version, id });
    return roots.move(version, root, built);
  };
  return async ({ id: built }, former, { follow, evenIfBehind = false } = {}) => {
    const held = <T>(work: (mine: Control) => T | Promise<T>) =>
      sets.fileOf({ version, id: built }).hold(work);
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const nameNext = async (left: StoredControl, put: (change: Partial<StoredControl>) => void) => {
      if (left.next !== undefined) return left.next === built;
      await follow?.(left.furthest?.position);
      return new Promise<boolean>((resolve, reject) => {
        const naming = held(async (mine) => {
          const mayGo = evenIfBehind || !isBehind(mine, left);
          if (mayGo) put({ next: built, supersededAt: isoNow() });
          resolve(mayGo);
          await released;
        });
        naming.catch(reject);
      });
    };
    const naming =
      former === undefined
        ? held(() => nameFirst(built))
        : sets.fileOf({ version, id: former.id }).hold(nameNext, 'FULL').finally(release);
    const isNamed = await naming.catch(ifRemoved(() => false));
    if (isNamed && former !== undefined) moveHint(roots, version, former.id, built);
    return isNamed;
  };
};

/** The way is walked and the mark is written while the set that goes is held. */
const removingIn = (graceMs: number, sets: Sets, roots: Roots): ReadModels['remove'] => {
  const mayGo = ({ version, id }: Entry, since: string): boolean => {
    if (Date.now() - Date.parse(since) <= graceMs) return false;
    const { way, isBroken } = wayFrom(roots.all().get(version), version, sets);
    return !isBroken && !way.includes(id);
  };
  return async (id) => {
    const entry = sets.entries().find((one) => one.id === id);
    if (entry === undefined) return true;
    const isOpen = sets.isOpen(id);
    const goes = await sets
      .fileOf(entry)
      .hold(({ supersededAt, renewedAt }, put) => {
        const may = mayGo(entry, supersededAt ?? renewedAt);
        if (may) put({ removed: true });
        return may;
      })
      .catch(ifRemoved(() => mayGo(entry, sets.changedAt(entry))));
    if (goes || !isOpen) await sets.close(id);
    if (goes) sets.unlink(entry);
    return goes;
  };
};

const listingOf = (sets: Sets, roots: Roots) => () => {
  const ways = Array.from(roots.all(), ([version, root]) => wayFrom(root, version, sets));
  const ends = new Set(ways.filter(({ isBroken }) => !isBroken).map(({ way }) => way.at(-1)));
  return sets.entries().map((entry) => {
    const absent: Control = { log: '', marks: 0, renewedAt: sets.changedAt(entry), removed: true };
    return { ...entry, control: sets.lookAt(entry) ?? absent, isLive: ends.has(entry.id) };
  });
};

/** Read models in a folder: a file for each set, and a small one that says where the chain of each version begins. */
export const sqliteReadModels = (options: SqliteOptions): ReadModels => {
  const { folder, version, collections, graceMs = TIMES.graceMs, busyMs = TIMES.waitMs } = options;
  const sets = setsIn(folder, collections, busyMs);
  const roots = rootsIn(folder);
  const live = livingIn(version, sets, roots);
  const succeed = succeedingIn(version, sets, roots);
  const remove = removingIn(graceMs, sets, roots);
  const ask = <T>(work: () => T | Promise<T>): Promise<T> => explaining(folder, work);
  return {
    version,
    live: () => ask(live),
    create: (log) => ask(() => sets.create(version, log)),
    succeed: (...between) => ask(() => succeed(...between)),
    list: () => ask(listingOf(sets, roots)),
    remove: (id) => ask(() => remove(id)),
    abandon: (other) => ask(() => roots.remove(other)),
    close: sets.closeAll,
  };
};
