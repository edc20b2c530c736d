import type { Collection, IndexDescription } from 'mongodb';
import type { Build, DocumentKey, Generation, Snapshot } from '../read-models';
import { batchOf } from './batch';
import { controlDocument, controlOf, type ControlOptions } from './control-document';
import {
  documentsIn,
  generationReader,
  loadStored,
  type Applied,
  type Incarnation,
} from './generation-reader';
import { documentOf, type Stored } from './layout';
import { indexesFor } from './questions';

export interface GenerationOptions extends ControlOptions {
  readonly maxCommitBytes: number;
  /** How far queries see. Generations share one query for it. */
  readonly applied: (incarnation: Incarnation) => Promise<Applied>;
}

/** Indexing a large collection takes longer than a command may; repeating the command continues to wait for it. */
const MAX_ATTEMPTS = 200;

const NO_SUCH_COLLECTION = 26;

/** The driver's and the server's error for a command that took too long. */
const isStillWorking = (error: unknown): boolean => {
  const { name, code } = error as { name?: unknown; code?: unknown };
  return name === 'MongoNetworkTimeoutError' || code === 50;
};

/** The names of existing indexes; none if the collection does not exist. */
const indexNames = async (documents: Collection<Stored>): Promise<readonly unknown[]> => {
  try {
    return (await documents.listIndexes().toArray()).map(({ name }) => name as unknown);
  } catch (error) {
    if ((error as { code?: unknown }).code === NO_SUCH_COLLECTION) return [];
    throw error;
  }
};

const createMissing = async (documents: Collection<Stored>, wanted: IndexDescription[]): Promise<void> => {
  for (let attempt = 1; ; attempt += 1) {
    const known = await indexNames(documents);
    const missing = wanted.filter(({ name }) => !known.includes(name));
    if (missing.length === 0) return;
    await documents.createIndexes(missing).catch((error: unknown) => {
      if (!isStillWorking(error) || attempt === MAX_ATTEMPTS) throw error;
    });
  }
};

/** Creates those that are missing. */
export const createIndexes = async (incarnation: Incarnation): Promise<void> => {
  for (const collection of incarnation.collections) {
    const wanted = indexesFor(collection);
    if (wanted.length > 0) await createMissing(documentsIn(incarnation, collection.name), wanted);
  }
};

export const mongodbGeneration = (incarnation: Incarnation, options: GenerationOptions): Generation => {
  const { maxCommitBytes } = options;
  const { run } = incarnation.connection;
  const reader = generationReader(incarnation, () => options.applied(incarnation));
  const control = controlDocument(incarnation, options);

  /** Retries until no document is newer than the control state, as happens while a commit is being applied. */
  const snapshot = async (keys: readonly DocumentKey[]): Promise<Snapshot> => {
    for (;;) {
      const now = await control.settled();
      const found = await loadStored(incarnation, keys);
      if (found.every((document) => document === undefined || document.n <= now.n))
        return { control: controlOf(now), documents: found.map(documentOf) };
    }
  };

  return {
    id: incarnation.id,
    maxCommitBytes,
    reader,
    control: async () => controlOf(await run(control.settled())),
    scan: reader.scan,
    load: async (keys) => (await run(loadStored(incarnation, keys))).map(documentOf),
    commit: async (n, to, writes) =>
      run(control.commit(n, to, batchOf(writes, incarnation.collections, maxCommitBytes))),
    snapshot: (keys) => run(snapshot(keys)),
  };
};

/** The same without indexes: creating them at the end costs a fraction. */
export const mongodbBuild = (incarnation: Incarnation, options: GenerationOptions): Build => {
  const generation = mongodbGeneration(incarnation, options);
  return {
    ...generation,
    finish: async () => {
      await incarnation.connection.run(createIndexes(incarnation));
      return generation;
    },
  };
};
