import type { Collection } from '../../../projections/projector';
import { commitTooLarge, type DocumentKey, type Write } from '../read-models';
import { stored, storedText, type Field } from '../stored-text';
import { fieldsOf } from './tables';

/**
 * The writes of one collection as they travel to the writing thread. One flat list costs a fraction of an object per
 * row: for each row its tenant, key, document (as JSON, or null to remove it) and the values of its indexed fields.
 */
export interface CollectionWrites {
  readonly collection: string;
  /** None of them exists yet. */
  readonly areNew: boolean;
  readonly flat: readonly Field[];
}

export interface Writes {
  /** All tenants of these writes. */
  readonly tenants: readonly string[];
  readonly collections: readonly CollectionWrites[];
}

/** The most bytes of UTF-8 per UTF-16 code unit. */
const MAX_BYTES_EACH = 3;

/** Texts are measured only when there might be too many. */
const mustFit = (groups: readonly CollectionWrites[], characters: number, maxBytes: number): void => {
  if (characters * MAX_BYTES_EACH <= maxBytes) return;
  let bytes = 0;
  for (const { flat } of groups)
    for (const field of flat) bytes += typeof field === 'string' ? Buffer.byteLength(field) : 0;
  if (bytes > maxBytes) throw commitTooLarge(bytes, maxBytes);
};

/**
 * Grouped by collection, in the order in which the writer expects the values of a row. Tenants are in the order of the
 * writes, so that they get the same numbers, as a rule, wherever the batches of a build end.
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
