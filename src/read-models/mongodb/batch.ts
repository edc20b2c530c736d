import type { AnyBulkWriteOperation } from 'mongodb';
import type { Collection, Document } from '../../../projections/projector';
import { commitTooLarge, type Write } from '../read-models';
import { idOf, stored, type Indexed, type Stored } from './layout';
import { indexedFields } from './questions';

/** The documents of one commit, by collection, and the same as the text that the control document holds. */
export interface Batch {
  readonly text: string;
  readonly collections: ReadonlyMap<string, readonly BatchWrite[]>;
}

export interface BatchWrite {
  readonly tenantId: string;
  readonly key: string;
  readonly document: Document | undefined;
  /** `null` for one that is removed. */
  readonly json: string;
}

/** The control document has 16 MB, and texts may grow where they are quoted. */
const MAX_TEXT_BYTES = 12_582_912;

const add = (groups: Map<string, BatchWrite[]>, collection: string, write: BatchWrite): void => {
  const group = groups.get(collection);
  if (group === undefined) groups.set(collection, [write]);
  else group.push(write);
};

export const batchOf = (
  writes: readonly Write[],
  collections: readonly Collection[],
  maxBytes: number,
): Batch => {
  const declared = new Set(collections.map(({ name }) => name));
  const groups = new Map<string, BatchWrite[]>();
  const entries: string[] = [];
  let bytes = 0;
  for (const { tenantId, collection, key, document } of writes) {
    if (!declared.has(collection)) throw new Error(`There is no collection ${collection}.`);
    const json = document === undefined ? 'null' : JSON.stringify(document);
    bytes +=
      Buffer.byteLength(tenantId) +
      Buffer.byteLength(key) +
      (document === undefined ? 0 : Buffer.byteLength(json));
    if (bytes > maxBytes) throw commitTooLarge(bytes, maxBytes);
    add(groups, collection, { tenantId, key, document, json });
    entries.push(`[${JSON.stringify([collection, tenantId, key]).slice(1, -1)},${json}]`);
  }
  const text = `[${entries.join(',')}]`;
  const textBytes = Buffer.byteLength(text);
  if (textBytes > MAX_TEXT_BYTES) throw commitTooLarge(textBytes, MAX_TEXT_BYTES);
  return { text, collections: groups };
};

/** What a control document holds, read again by whoever finishes it. */
export const batchFrom = (text: string): Batch => {
  const groups = new Map<string, BatchWrite[]>();
  for (const [collection, tenantId, key, document] of JSON.parse(text) as [
    string,
    string,
    string,
    Document | null,
  ][])
    add(groups, collection, {
      tenantId,
      key,
      document: document ?? undefined,
      json: JSON.stringify(document),
    });
  return { text, collections: groups };
};

/** Computed once per collection. */
const indexed = new WeakMap<Collection, Indexed>();
const indexedIn = (collection: Collection): Indexed => {
  const known = indexed.get(collection) ?? { fields: indexedFields(collection) };
  indexed.set(collection, known);
  return known;
};

/** Each document replaces what an earlier commit wrote, and nothing else. */
export const operationsOf = (
  collection: Collection,
  n: number,
  writes: readonly BatchWrite[],
): AnyBulkWriteOperation<Stored>[] =>
  writes.map((write) => ({
    replaceOne: {
      filter: { _id: idOf(write.tenantId, write.key), n: { $lt: n } },
      replacement: stored(n, write, indexedIn(collection)),
      upsert: true,
    },
  }));
