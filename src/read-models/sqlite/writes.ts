import type { Collection } from '../../../projections/projector';
import { commitTooLarge, type Write } from '../read-models';
import { stored, storedText, type Field } from '../stored-text';
import { fieldsOf } from './tables';

/**
 * The writes of one collection as sent to the writer thread. A flat list costs a fraction of one object per row: it has
 * each row's tenant, key, document (as JSON, or null to delete it) and the values of its indexed fields.
 */
export interface CollectionWrites {
  readonly collection: string;
  readonly flat: readonly Field[];
}

export type Writes = readonly CollectionWrites[];

/** In UTF-8, per UTF-16 code unit. */
const MAX_BYTES_PER_UNIT = 3;

/** Measures exactly only if the estimate might exceed the limit. */
const mustFit = (groups: Writes, characters: number, maxBytes: number): void => {
  if (characters * MAX_BYTES_PER_UNIT <= maxBytes) return;
  let bytes = 0;
  for (const { flat } of groups)
    for (const field of flat) bytes += typeof field === 'string' ? Buffer.byteLength(field) : 0;
  if (bytes > maxBytes) throw commitTooLarge(bytes, maxBytes);
};

/** Groups writes by collection, with the values of a row in the order the writer expects. */
export const flattening = (collections: readonly Collection[], maxBytes: number) => {
  const fields = new Map(collections.map((collection) => [collection.name, fieldsOf(collection)]));
  return (writes: readonly Write[]): Writes => {
    const groups = new Map<string, Field[]>();
    let characters = 0;
    for (const { tenantId, collection, key, document } of writes) {
      const flat = groups.get(collection) ?? [];
      groups.set(collection, flat);
      const text = document === undefined ? null : JSON.stringify(document);
      characters += tenantId.length + key.length + (text?.length ?? 0);
      flat.push(tenantId, storedText(key), text);
      for (const field of fields.get(collection) ?? []) flat.push(stored(document?.[field]));
    }
    const flattened = Array.from(groups, ([collection, flat]) => ({ collection, flat }));
    mustFit(flattened, characters, maxBytes);
    return flattened;
  };
};
