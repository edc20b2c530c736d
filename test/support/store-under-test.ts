import type { ReadModels } from '../../src/read-models/read-models';
import { sqliteReadModels } from '../../src/read-models/sqlite/sqlite-read-models';
import { freshFolder } from './folders';
import { inThreadWriter } from './in-thread-writer';

/** Where a test may make a store fail. */
export interface StoreHooks {
  /** Before every single write of a commit. */
  readonly onWrite?: () => void;
  /** After anything that changes the store is done: what it throws is what the caller hears instead of the answer. */
  readonly onAnswer?: (what: string) => void;
  readonly mostCommitBytes?: number;
}

/** Opens the store at a place, as another process would if it is open already. Without hooks it writes as a server does. */
type OpenStore = (place: string, hooks?: StoreHooks) => Promise<ReadModels>;

const stores: Readonly<Record<string, OpenStore>> = {
  sqlite: (folder, hooks) => {
    if (hooks === undefined) return sqliteReadModels(folder);
    const { mostCommitBytes, ...writing } = hooks;
    const startWriter = inThreadWriter(writing);
    return sqliteReadModels(folder, {
      startWriter,
      ...(mostCommitBytes === undefined ? {} : { mostCommitBytes }),
    });
  },
};

/** The kind of store that every test means that means any: `READ_MODELS` chooses it. */
export const storeName = process.env['READ_MODELS'] ?? 'sqlite';

/** A store of that kind, at a fresh place if none is named. Whoever opens it closes it. */
export const storeUnderTest: (place?: string, hooks?: StoreHooks) => Promise<ReadModels> = (
  place = freshFolder(),
  hooks,
) => {
  const open = stores[storeName];
  if (open === undefined) throw new Error(`There is no store ${storeName} to test.`);
  return open(place, hooks);
};
