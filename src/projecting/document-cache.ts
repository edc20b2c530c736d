import type { Document } from '../../projections/projector';
import type { DocumentKey, Target, Write } from '../read-models/read-models';

/** A document that a batch touches: loaded with all others at once, then changed in memory. */
export interface Slot extends DocumentKey {
  document: Document | undefined;
  isWritten: boolean;
  /** More than one event has touched it lately. */
  isShared: boolean;
}

/** Changes a document in memory. */
export const write = (slot: Slot, document: Document | undefined): void => {
  slot.document = document;
  slot.isWritten = true;
};

const inner = <V>(map: Map<string, Map<string, V>>, key: string): Map<string, V> => {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = new Map<string, V>();
  map.set(key, made);
  return made;
};

/**
 * The slots of each tenant and collection, by key. Nested, because building one name from the three would cost more than
 * the look-ups. All documents of an event are of one tenant, and so are those of many events in a row.
 */
const slotTables = () => {
  const tables = new Map<string, Map<string, Map<string, Slot>>>();
  let lastTenant: string | undefined;
  let ofLast = new Map<string, Map<string, Slot>>();
  return (tenantId: string, collection: string): Map<string, Slot> => {
    if (lastTenant !== tenantId) [lastTenant, ofLast] = [tenantId, inner(tables, tenantId)];
    return inner(ofLast, collection);
  };
};

/** Above this number of documents, only those are kept that several events have touched: the next batch often needs them. */
const MAX_KEPT = 2_048;

/**
 * The documents of a generation as one run sees them: those of its last control state, with everything on top that the
 * run has written. It is valid as long as every commit of the run succeeds; after one that did not, it must be discarded.
 */
export const documentCache = (generation: Pick<Target, 'load'>, maxKept = MAX_KEPT) => {
  let tableOf = slotTables();
  let kept: Slot[] = [];
  /** The documents of this batch, perhaps more than once, and those of them that are not loaded yet. */
  let touched: Slot[] = [];
  let unknown: Slot[] = [];

  return {
    /** The next batch begins. */
    begin: (): void => {
      touched = [];
      unknown = [];
      if (kept.length <= maxKept) return;
      kept = kept.filter(({ isShared }) => isShared);
      tableOf = slotTables();
      for (const slot of kept) {
        slot.isShared = false;
        tableOf(slot.tenantId, slot.collection).set(slot.key, slot);
      }
    },

    /** A document of this batch. Its content is known after `load`. */
    slot: (tenantId: string, collection: string, key: string): Slot => {
      const table = tableOf(tenantId, collection);
      const known = table.get(key);
      if (known !== undefined) {
        known.isShared = true;
        touched.push(known);
        return known;
      }
      const slot = { tenantId, collection, key, document: undefined, isWritten: false, isShared: false };
      table.set(key, slot);
      kept.push(slot);
      touched.push(slot);
      unknown.push(slot);
      return slot;
    },

    load: async (): Promise<void> => {
      if (unknown.length === 0) return;
      const wanted = unknown;
      unknown = [];
      const loaded = await generation.load(wanted);
      wanted.forEach((slot, i) => (slot.document = loaded[i]));
    },

    /** What the batch has changed. It stays so until the next batch changes it. */
    writes: (): readonly Write[] => {
      const writes: Write[] = [];
      for (const slot of touched) {
        if (!slot.isWritten) continue;
        slot.isWritten = false;
        writes.push(slot);
      }
      return writes;
    },
  };
};

export type DocumentCache = ReturnType<typeof documentCache>;
