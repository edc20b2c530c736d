import type { Collection } from '../../../projections/projector';
import { insertOnce } from '../../mongodb/duplicates';
import { settleAll } from '../../async/settle-all';
import type { Build, DocumentKey, Generation, Snapshot } from '../read-models';
import { batchOf } from './batch';
import { controlDocument, controlOf, type ControlOptions } from './control-document';
import {
  documentsIn,
  generationReader,
  loadStored,
  assertNotDropped,
  type OpenGeneration,
} from './generation-reader';
import { documentOf, FIRST } from './layout';
import { indexesFor } from './queries';

export interface GenerationOptions extends ControlOptions {
  readonly maxCommitBytes: number;
}

/** Indexing a large collection takes longer than a command may. */
const MAX_ATTEMPTS = 200;

/** The driver's and the server's error for a command that took too long. */
const isStillWorking = (error: unknown): boolean => {
  const { name, code } = error as { name?: unknown; code?: unknown };
  return name === 'MongoNetworkTimeoutError' || code === 50;
};

/** Only before the first commit: later, a collection that lacks its first document was dropped. */
export const createCollections = async (opened: OpenGeneration): Promise<void> => {
  await settleAll(opened.collections.map(({ name }) => insertOnce(documentsIn(opened, name), FIRST)));
};

/** Throws `contents_lost` if a collection was dropped. */
export const checkCollections = async (opened: OpenGeneration): Promise<void> => {
  await settleAll(opened.collections.map(({ name }) => assertNotDropped(opened, name)));
};

/**
 * Creates those that are missing, and returns when all can be used. Only a command that succeeds proves that: it waits
 * for builds in progress, whereas a list of indexes includes them.
 */
const createIndexesOf = async (opened: OpenGeneration, collection: Collection): Promise<void> => {
  const wanted = indexesFor(collection);
  if (wanted.length === 0) return;
  for (let attempt = 1; ; attempt += 1)
    try {
      await documentsIn(opened, collection.name).createIndexes(wanted);
      return;
    } catch (error) {
      if (!isStillWorking(error) || attempt === MAX_ATTEMPTS) throw error;
    }
};

export const createIndexes = async (opened: OpenGeneration): Promise<void> => {
  await settleAll(opened.collections.map((collection) => createIndexesOf(opened, collection)));
};

export const mongodbGeneration = (opened: OpenGeneration, options: GenerationOptions): Generation => {
  const { maxCommitBytes } = options;
  const run = <T>(work: Promise<T>): Promise<T> => opened.guarded(opened.connection.run(work));
  const reader = generationReader(opened);
  const control = controlDocument(opened, options);

  /** Retries until no document is newer than the control state, as happens while a commit is being applied. */
  const snapshot = async (keys: readonly DocumentKey[]): Promise<Snapshot> => {
    for (;;) {
      const now = await control.settled();
      const found = await loadStored(opened, keys);
      if (found.every((document) => document === undefined || document.n <= now.n))
        return { control: controlOf(now), documents: found.map(documentOf) };
    }
  };

  return {
    id: opened.id,
    maxCommitBytes,
    reader,
    control: async () => controlOf(await run(control.settled())),
    scan: reader.scan,
    load: async (keys) => (await run(loadStored(opened, keys))).map(documentOf),
    commit: async (n, to, writes) =>
      run(control.commit(n, to, batchOf(writes, opened.collections, maxCommitBytes))),
    snapshot: (keys) => run(snapshot(keys)),
    scanTexts: async (...scope) =>
      (await reader.scan(...scope)).map(({ document, ...row }) => ({
        ...row,
        text: JSON.stringify(document),
      })),
  };
};

/** The same without indexes: creating them at the end costs a fraction. */
export const mongodbBuild = (opened: OpenGeneration, options: GenerationOptions): Build => {
  const generation = mongodbGeneration(opened, options);
  return {
    ...generation,
    finish: async () => {
      await opened.connection.run(createIndexes(opened));
      return generation;
    },
  };
};
