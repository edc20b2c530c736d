import type { Collection } from '../../../projections/projector';
import { codeOf, fault, messageOf } from '../../fault';
import { dataVersion, openForReading } from '../../sqlite/database';
import { generationName, type Generation, type GenerationId, type Write } from '../read-models';
import { generationReader } from './generation-reader';
import type { Writes } from './generation-writer';
import { stored, storedText, type Field } from './stored-text';
import { fieldsOf } from './tables';
import type { WriteRequest } from './writer';

type SqliteGeneration = Generation & {
  readonly [PATH]: string;
  /** Somebody has made up for what was put off. */
  isFilled(): void;
  close(): void;
};

/**
 * Grouped by collection, in the order in which the writer expects the values of a row. Tenants are in the order of the
 * writes, so that they get the same numbers, as a rule, wherever the batches of a filling end.
 */
const flatten = (writes: readonly Write[], fields: ReadonlyMap<string, readonly string[]>): Writes => {
  const groups = { known: new Map<string, Field[]>(), new: new Map<string, Field[]>() };
  const tenants = new Set<string>();
  for (const { tenantId, collection, key, document, isNew = false } of writes) {
    tenants.add(tenantId);
    const group = isNew ? groups.new : groups.known;
    const flat = group.get(collection) ?? [];
    group.set(collection, flat);
    flat.push(tenantId, storedText(key), document === undefined ? null : JSON.stringify(document));
    for (const field of fields.get(collection) ?? []) flat.push(stored(document?.[field]));
  }
  const written = (group: ReadonlyMap<string, Field[]>, areNew: boolean) =>
    Array.from(group, ([collection, flat]) => ({ collection, areNew, flat }));
  return {
    tenants: [...tenants],
    collections: [...written(groups.new, true), ...written(groups.known, false)],
  };
};

/** Where a generation is kept. */
const PATH = Symbol('path');

const pathOf = (generation: Generation & { readonly [PATH]?: string }): string => {
  const path = generation[PATH];
  if (path === undefined) throw new Error(`${generationName(generation.id)} is not kept in a SQLite file.`);
  return path;
};

/**
 * A generation as this process reads it; what it writes goes through `send`. While a commit is put off, only the writing
 * connection sees it; and while it is filled in bulk, only the writing side can make the keys that a look-up needs.
 */
export const sqliteGeneration = (
  path: string,
  id: GenerationId,
  collections: readonly Collection[],
  inBulk: boolean,
  send: <T>(request: WriteRequest) => Promise<T>,
): SqliteGeneration => {
  const db = openForReading(path);
  const reader = generationReader(db, collections);
  // SQLite opens the rest of its files at the first question: from then on they may be removed under it.
  reader.control();
  const fields = new Map(collections.map((collection) => [collection.name, fieldsOf(collection)]));
  let isFilling = inBulk;
  let isPutOff = false;
  /** Counts how often everything was settled. */
  let settled = 0;

  /** What the driver throws becomes a fault that callers know; a mistake of ours stays one. */
  const readNow = <T>(read: () => T): T => {
    try {
      return read();
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      throw fault('read_models_unavailable', `The read model ${path} cannot be read: ${messageOf(error)}`);
    }
  };
  const reading = async <T>(read: () => T): Promise<T> => readNow(read);
  // Nothing is written through this connection, so it sees every change as another's.
  const version = dataVersion(db);

  const isSettledNow = (): void => {
    isPutOff = false;
    settled += 1;
  };

  /** There is nothing to settle when somebody else has done it meanwhile; else it was lost, with its thread or its disk. */
  const settle = async (): Promise<void> => {
    if (!isPutOff) return;
    const before = settled;
    const isDone = await send<boolean>({ do: 'settle', id }).catch((error: unknown) => {
      isPutOff = false;
      throw error;
    });
    if (isDone) return isSettledNow();
    if (settled !== before) return;
    isPutOff = false;
    throw fault('read_models_unavailable', `What was written last to ${path} is lost.`);
  };

  return {
    id,
    [PATH]: path,
    version: () => readNow(version),
    get: (tenantId, collection, key) => reading(() => reader.get(tenantId, collection, key)),
    find: (tenantId, collection, query) => reading(() => reader.find(tenantId, collection, query)),
    countBefore: (tenantId, collection, part, value) =>
      reading(() => reader.countBefore(tenantId, collection, part, value)),
    scan: (collection, limit, after = { tenantId: '' }) =>
      reading(() => reader.scan(collection, limit, after)),
    lying: (collection, stretch) => reading(() => reader.lying(collection, stretch)),
    matches: (other, collection, stretch) =>
      reading(() => reader.matches(pathOf(other), collection, stretch)),
    load: (keys) =>
      isPutOff || isFilling
        ? send({
            do: 'load',
            id,
            keys: keys.map(({ tenantId, collection, key }) => ({ tenantId, collection, key })),
          })
        : reading(() => reader.load(keys)),
    control: async () => {
      await settle();
      return reading(reader.control);
    },
    /** What was put off before is seen by the reading connection only when this one is done. */
    commit: async (n, to, writes, more = false) => {
      isPutOff ||= more;
      try {
        const request = { do: 'commit', id, n, to, writes: flatten(writes, fields), more } as const;
        const isDone = await send<boolean>(request);
        if (more && isDone) isPutOff = true;
        else isSettledNow();
        return isDone;
      } catch (error) {
        isPutOff = false;
        throw error;
      }
    },
    settle,
    snapshot: (keys) =>
      reading(() => {
        db.exec('BEGIN');
        try {
          return { control: reader.control(), documents: reader.load(keys) };
        } finally {
          db.exec('COMMIT');
        }
      }),
    finish: async () => {
      await send<void>({ do: 'finish', id });
      isFilling = false;
      isSettledNow();
    },
    isFilled: () => {
      isFilling = false;
    },
    close: () => db.close(),
  };
};
