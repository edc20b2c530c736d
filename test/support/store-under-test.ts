import type { ReadModels, Target } from '../../src/read-models/read-models';
import { sqliteReadModels } from '../../src/read-models/sqlite/sqlite-read-models';
import { freshFolder } from './folders';
import { inThreadWriter } from './in-thread-writer';
import { openMongodb } from './mongodb-under-test';
import { isClustered } from './profile';

/** Where a test may make a store fail. */
export interface StoreHooks {
  /** Before every single write of a commit. */
  readonly onWrite?: () => void;
  /** After every change to the store: if it throws, the caller gets that error instead of the result. */
  readonly onAnswer?: (what: string) => void;
  readonly maxCommitBytes?: number;
}

/**
 * Opens the store at a place, as another process would if it is already open. Without hooks it writes as a projecting
 * worker does.
 */
type OpenStore = (place: string, hooks?: StoreHooks) => Promise<ReadModels>;

/** The results of changes to the registry and generations pass through the hook. */
const answering = (readModels: ReadModels, onAnswer: NonNullable<StoreHooks['onAnswer']>): ReadModels => {
  const through =
    <A extends readonly unknown[], R>(what: string, work: (...dependencies: A) => Promise<R>) =>
    async (...dependencies: A): Promise<R> => {
      const answer = await work(...dependencies);
      onAnswer(what);
      return answer;
    };
  const targets = <T extends Target>(target: T): T => ({
    ...target,
    commit: through('commit', target.commit),
  });
  return {
    ...readModels,
    create: through('create', readModels.create),
    makeLive: through('makeLive', readModels.makeLive),
    lease: through('lease', readModels.lease),
    release: through('release', readModels.release),
    remove: through('remove', readModels.remove),
    open: through('open', async (...dependencies) => targets(await readModels.open(...dependencies))),
    build: through('open', async (...dependencies) => {
      const build = targets(await readModels.build(...dependencies));
      return { ...build, finish: through('finish', async () => targets(await build.finish())) };
    }),
  };
};

const inFiles: OpenStore = async (folder, hooks) => {
  if (hooks === undefined) return sqliteReadModels(folder);
  const { maxCommitBytes, ...writing } = hooks;
  return sqliteReadModels(folder, {
    writer: inThreadWriter(writing),
    ...(maxCommitBytes === undefined ? {} : { maxCommitBytes }),
  });
};

const inMongodb: OpenStore = async (place, { onAnswer, ...options } = {}) => {
  const readModels = await openMongodb(place, options);
  return onAnswer === undefined ? readModels : answering(readModels, onAnswer);
};

/** A store of the profile under test, at a fresh place if none is named. The caller closes it. */
export const storeUnderTest = (place = freshFolder(), hooks?: StoreHooks): Promise<ReadModels> =>
  (isClustered ? inMongodb : inFiles)(place, hooks);
