import type { AnyBulkWriteOperation } from 'mongodb';
import type { Collection, Document } from '../../../projections/projector';
import { groupedBy } from '../../grouping';
import { commitTooLarge, type Write } from '../read-models';
import { idOf, stored, type Stored } from './layout';
import { indexedFields } from './queries';

/** The documents of one commit by collection, and the same as JSON for the control document. */
export interface Batch {
  readonly text: string;
  readonly collections: ReadonlyMap<string, readonly BatchWrite[]>;
}

export interface BatchWrite extends Write {
  /** `null` for a deletion. */
  readonly json: string;
}

/** Leaves room for escaping, since the control document is limited to 16 MB. */
const MAX_TEXT_BYTES = 12_582_912;

const batch = (text: string, writes: readonly BatchWrite[]): Batch => ({
  text,
  collections: groupedBy(writes, ({ collection }) => collection),
});

const bytesOf = ({ tenantId, key, document, json }: BatchWrite): number =>
  Buffer.byteLength(tenantId) +
  Buffer.byteLength(key) +
  (document === undefined ? 0 : Buffer.byteLength(json));

export const batchOf = (
  writes: readonly Write[],
  collections: readonly Collection[],
  maxBytes: number,
): Batch => {
  const declared = new Set(collections.map(({ name }) => name));
  const entries: string[] = [];
  let bytes = 0;
  const all = writes.map((write): BatchWrite => {
    const { tenantId, collection, key, document } = write;
    if (!declared.has(collection)) throw new Error(`There is no collection ${collection}.`);
    const json = document === undefined ? 'null' : JSON.stringify(document);
    const whole = { ...write, json };
    bytes += bytesOf(whole);
    if (bytes > maxBytes) throw commitTooLarge(bytes, maxBytes);
    entries.push(`[${JSON.stringify([collection, tenantId, key]).slice(1, -1)},${json}]`);
    return whole;
  });
  const text = `[${entries.join(',')}]`;
  const textBytes = Buffer.byteLength(text);
  if (textBytes > MAX_TEXT_BYTES) throw commitTooLarge(textBytes, MAX_TEXT_BYTES);
  return batch(text, all);
};

type Entry = readonly [collection: string, tenantId: string, key: string, document: Document | null];

/** Parses the text in a control document, to finish the commit of another process. */
export const batchFrom = (text: string): Batch => {
  const entries = JSON.parse(text) as readonly Entry[];
  const all = entries.map(([collection, tenantId, key, document]): BatchWrite => {
    const json = JSON.stringify(document);
    return { collection, tenantId, key, document: document ?? undefined, json };
  });
  return batch(text, all);
};

/** Each write only replaces what an earlier commit wrote. */
export const operationsOf = (
  collection: Collection,
  n: number,
  writes: readonly BatchWrite[],
): AnyBulkWriteOperation<Stored>[] => {
  const indexed = indexedFields(collection);
  return writes.map((write) => ({
    replaceOne: {
      filter: { _id: idOf(write.tenantId, write.key), n: { $lt: n } },
      replacement: stored(n, write, indexed),
      upsert: true,
    },
  }));
};
