import type { BulkWriteResult, Collection as MongoCollection } from 'mongodb';
import type { Collection } from '../../../projections/projector';
import { monotonicMs, pause } from '../../async/clock';
import type { MongoConnection } from '../../mongodb/connection';
import { insertOnce, isDuplicate } from '../../mongodb/duplicates';
import { lost } from '../damage';
import { generationName, type Checkpoint, type Control, type GenerationId } from '../read-models';
import { batchFrom, operationsOf, type Batch, type BatchWrite } from './batch';
import { documentsIn, type OpenGeneration } from './generation-reader';
import { CONTROLS, idOf, type Stored, type StoredControl } from './layout';

export const controlsIn = ({ db }: MongoConnection) => db.collection<StoredControl>(CONTROLS);

const withoutWrites = { projection: { writes: 0 } };

/** Throws `contents_lost` if somebody has altered it. */
const wellFormed = (control: StoredControl): StoredControl => {
  const { n, applied_n, log, to } = control;
  const isSound =
    Number.isInteger(n) &&
    Number.isInteger(applied_n) &&
    typeof log === 'string' &&
    (to === undefined || (typeof to?.position === 'string' && typeof to.event_id === 'string'));
  if (!isSound) throw lost('its control document was altered.');
  return control;
};

/** Finds control documents, without the writes of the last commit: those asked for at the same time with one query. */
export const controlFinder = (connection: MongoConnection) => {
  let next: Promise<readonly StoredControl[]> | undefined;
  let names: string[] = [];
  const findAll = (): Promise<readonly StoredControl[]> => {
    const wanted = names;
    [next, names] = [undefined, []];
    const options = { ...withoutWrites, batchSize: wanted.length + 1 };
    return controlsIn(connection)
      .find({ _id: { $in: wanted } }, options)
      .toArray();
  };
  return async (id: GenerationId): Promise<StoredControl | undefined> => {
    const name = generationName(id);
    names.push(name);
    const found = (await (next ??= Promise.resolve().then(findAll))).find(({ _id }) => _id === name);
    return found === undefined ? undefined : wellFormed(found);
  };
};

export const controlOf = ({ n, log, to, applied }: StoredControl): Control => ({
  n,
  log,
  ...(to === undefined ? {} : { to: { position: to.position, eventId: to.event_id } }),
  ...(applied === undefined ? {} : { applied }),
});

export const insertControl = (connection: MongoConnection, id: GenerationId, log: string): Promise<void> =>
  insertOnce(controlsIn(connection), { _id: generationName(id), log, n: 0, applied_n: 0 });

/** Called before every write of a commit. Tests make it fail. */
export type OnWrite = () => void;

export interface ControlOptions {
  readonly onWrite: OnWrite;
  /** How long another process's commit may take before this one finishes it. */
  readonly finishAfterMs: number;
}

/**
 * Updating the control document of a generation is the commit. A compare-and-set moves it from `n` to `n + 1`, provided
 * the documents of `n` have been applied, and stores the new documents in it. They are then written to their
 * collections, each only over what an earlier commit wrote, and `applied_n` follows. Any process that finds this
 * unfinished finishes it, which is idempotent.
 *
 * Until a majority has it, the update may be rolled back. So documents are written only after a majority acknowledged
 * it, or after reading it with read concern `majority`; the connection uses both everywhere.
 */
export interface ControlDocument {
  /** The control document once its last commit has been applied, by whichever process. */
  settled(): Promise<StoredControl>;
  commit(n: number, to: Checkpoint | undefined, batch: Batch): Promise<boolean>;
}

interface BulkFailure {
  readonly result?: Partial<
    Pick<BulkWriteResult, 'matchedCount' | 'upsertedCount' | 'getWriteErrors' | 'getWriteConcernError'>
  >;
}

/**
 * A duplicate key error means that this commit or a later one has already written the document. Returns whether all the
 * others were written too, by the server's counts: some servers stop at the first duplicate. Rethrows anything else.
 */
const isAllWritten = (error: unknown, writes: number): boolean => {
  const { result } = error as BulkFailure;
  // Not the list of the error itself, which the driver leaves empty if there is a write concern error as well.
  const list = result?.getWriteErrors?.() ?? [];
  const isHarmless = list.length > 0 && list.every(isDuplicate);
  if (!isHarmless || result?.getWriteConcernError?.() !== undefined) throw error;
  return (result?.matchedCount ?? 0) + (result?.upsertedCount ?? 0) + list.length === writes;
};

/** The writes that neither this commit nor a later one has made yet. */
const missingIn = async (
  documents: MongoCollection<Stored>,
  n: number,
  writes: readonly BatchWrite[],
): Promise<readonly BatchWrite[]> => {
  const ids = writes.map(({ tenantId, key }) => idOf(tenantId, key));
  const found = await documents
    .find({ _id: { $in: ids }, n: { $gte: n } }, { projection: { _id: 1 }, batchSize: ids.length + 1 })
    .toArray();
  const written = new Set(found.map(({ _id }) => _id));
  return writes.filter((_, i) => !written.has(ids[i] as string));
};

/** Per command. A commit may have tens of thousands of documents, and a command must not time out. */
const MAX_WRITES = 1_000;

const applyChunk = async (
  documents: MongoCollection<Stored>,
  collection: Collection,
  n: number,
  writes: readonly BatchWrite[],
): Promise<void> => {
  for (let left = writes; left.length > 0;)
    try {
      await documents.bulkWrite(operationsOf(collection, n, left), { ordered: false });
      return;
    } catch (error) {
      if (isAllWritten(error, left.length)) return;
      left = await missingIn(documents, n, left);
    }
};

interface Applying {
  readonly onWrite: OnWrite;
  /** Writes only what an earlier attempt has not. So it completes eventually, however slow the server is. */
  readonly isResumed: boolean;
}

const apply = async (
  opened: OpenGeneration,
  n: number,
  batch: Batch,
  { onWrite, isResumed }: Applying,
): Promise<void> => {
  for (const collection of opened.collections) {
    const writes = batch.collections.get(collection.name) ?? [];
    const documents = documentsIn(opened, collection.name);
    for (let at = 0; at < writes.length; at += MAX_WRITES) {
      const chunk = writes.slice(at, at + MAX_WRITES);
      const left = isResumed ? await missingIn(documents, n, chunk) : chunk;
      if (left.length === 0) continue;
      onWrite();
      await applyChunk(documents, collection, n, left);
    }
  }
};

export const controlDocument = (
  opened: OpenGeneration,
  { onWrite, finishAfterMs }: ControlOptions,
): ControlDocument => {
  const controls = controlsIn(opened.connection);
  const self = { _id: generationName(opened.id) };

  const findWithWrites = async (): Promise<StoredControl> => {
    const found = await controls.findOne(self);
    if (found === null) throw await opened.withoutControl();
    return wellFormed(found);
  };

  const moveApplied = async (n: number, applied: string | undefined): Promise<void> => {
    onWrite();
    const $set = { applied_n: n, ...(applied === undefined ? {} : { applied }) };
    await controls.updateOne({ ...self, n, applied_n: n - 1 }, { $set, $unset: { writes: '' } });
  };

  const finish = async (): Promise<void> => {
    const { n, applied_n, to, writes } = await findWithWrites();
    if (applied_n === n) return;
    if (typeof writes !== 'string' || applied_n !== n - 1) throw lost('its control document was altered.');
    await apply(opened, n, batchFrom(writes), { onWrite, isResumed: true });
    await moveApplied(n, to?.position);
  };

  const settled = async (): Promise<StoredControl> => {
    const end = monotonicMs() + finishAfterMs;
    for (;;) {
      const now = await opened.control();
      if (now.applied_n === now.n) return now;
      if (monotonicMs() >= end) await finish();
      else await pause(finishAfterMs / 10);
    }
  };

  /** Never inserts, so a dropped generation stays dropped. */
  const compareAndSet = async (n: number, to: Checkpoint | undefined, { text }: Batch): Promise<boolean> => {
    onWrite();
    const checkpoint = to === undefined ? {} : { to: { position: to.position, event_id: to.eventId } };
    const { matchedCount } = await controls.updateOne(
      { ...self, n, applied_n: n },
      { $set: { n: n + 1, writes: text, ...checkpoint } },
    );
    return matchedCount === 1;
  };

  return {
    settled,
    commit: async (n, to, batch) => {
      while (!(await compareAndSet(n, to, batch))) if ((await settled()).n !== n) return false;
      await apply(opened, n + 1, batch, { onWrite, isResumed: false });
      await moveApplied(n + 1, to?.position);
      return true;
    },
  };
};
