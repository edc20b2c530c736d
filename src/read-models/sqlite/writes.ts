import type { Collection } from '../../../projections/projector';
import { commitTooLarge, type DocumentKey, type Write } from '../read-models';
import { stored, storedText, type Field } from '../stored-text';
import { fieldsOf } from './tables';

/**
 * The writes of one collection as sent to the writer thread. A flat list costs a fraction of one object per row: it has
 * each row's tenant, key, document (as JSON, or null to delete it) and the values of its indexed fields.
 */
export interface CollectionWrites {
  readonly collection: string;
  /** None of them exist yet. */
  readonly areNew: boolean;
  readonly flat: readonly Field[];
}

export interface Writes {
  /** All tenants of these writes. */
  readonly tenants: readonly string[];
  readonly collections: readonly CollectionWrites[];
}

/** In UTF-8, per UTF-16 code unit. */
const MAX_BYTES_PER_UNIT = 3;

/** Measures exactly only if the estimate might exceed the limit. */
const mustFit = (groups: readonly CollectionWrites[], characters: number, maxBytes: number): void => {
  if (characters * MAX_BYTES_PER_UNIT <= maxBytes) return;
  let bytes = 0;
  for (const { flat } of groups)
    for (const field of flat) bytes += typeof field === 'string' ? Buffer.byteLength(field) : 0;
  if (bytes > maxBytes) throw commitTooLarge(bytes, maxBytes);
};

/**
 * Groups writes by collection, with the values of a row in the order the writer expects. Tenants are in the order of the
 * writes, so that they usually get the same numbers wherever the batches of a build end.
 */
export const flattening = (collections: readonly Collection[], maxBytes: number) => {
  const fields = new Map(collections.map((collection) => [collection.name, fieldsOf(collection)]));
  return (writes: readonly Write[], isNew: (key: DocumentKey) => boolean): Writes => {
    const groups = { known: new Map<string, Field[]>(), new: new Map<string, Field[]>() };
    const tenants = new Set<string>();
    let characters = 0;
    for (const write of writes) {
      const { tenantId, collection, key, document } = write;
      tenants.add(tenantId);
      const isAdded = isNew(write);
      if (isAdded && document === undefined) continue;
      const group = isAdded ? groups.new : groups.known;
      const flat = group.get(collection) ?? [];
      group.set(collection, flat);
      const text = document === undefined ? null : JSON.stringify(document);
      characters += tenantId.length + key.length + (text?.length ?? 0);
      flat.push(tenantId, storedText(key), text);
      for (const field of fields.get(collection) ?? []) flat.push(stored(document?.[field]));
    }
    const written = (group: ReadonlyMap<string, Field[]>, areNew: boolean) =>
      Array.from(group, ([collection, flat]) => ({ collection, areNew, flat }));
    const all = [...written(groups.new, true), ...written(groups.known, false)];
    mustFit(all, characters, maxBytes);
    return { tenants: [...tenants], collections: all };
  };
};
