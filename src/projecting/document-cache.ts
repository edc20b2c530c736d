import type { Document } from '../../projections/projector';
import type { DocumentKey, Target, Write } from '../read-models/read-models';

/** A document that a batch touches: loaded together with the others, then changed in memory. */
export interface Slot extends DocumentKey {
  document: Document | undefined;
  isWritten: boolean;
  /** More than one event touched it recently. */
  isShared: boolean;
}

export const write = (slot: Slot, document: Document | undefined): void => {
  slot.document = document;
  slot.isWritten = true;
};

const getOrCreate = <V>(map: Map<string, Map<string, V>>, key: string): Map<string, V> => {
  const known = map.get(key);
  if (known !== undefined) return known;
  const created = new Map<string, V>();
  map.set(key, created);
  return created;
};

/**
 * Slots by tenant, collection and key. Nested maps are cheaper than building a combined key. The last tenant's map is at
 * hand, because many events in a row belong to one tenant.
 */
const slotTables = () => {
  const tables = new Map<string, Map<string, Map<string, Slot>>>();
  let lastTenant: string | undefined;
  let lastTables = new Map<string, Map<string, Slot>>();
  return (tenantId: string, collection: string): Map<string, Slot> => {
    if (lastTenant !== tenantId) [lastTenant, lastTables] = [tenantId, getOrCreate(tables, tenantId)];
    return getOrCreate(lastTables, collection);
  };
};

/** Above this number only documents that several events touched are kept, since the next batch often needs them. */
const MAX_KEPT = 2_048;

/**
 * The documents of a generation as one run sees them: as of its last control state, plus everything the run has written.
 * Discard it after a failed commit.
 */
export const documentCache = (generation: Pick<Target, 'load'>, maxKept = MAX_KEPT) => {
  let tableOf = slotTables();
  let kept: Slot[] = [];
  /** The documents of this batch, possibly repeated, and those of them that are not loaded yet. */
  let touched: Slot[] = [];
  let unloaded: Slot[] = [];

  return {
    /** Starts the next batch. */
    begin: (): void => {
      touched = [];
      unloaded = [];
      if (kept.length <= maxKept) return;
      kept = kept.filter(({ isShared }) => isShared);
      tableOf = slotTables();
      for (const slot of kept) {
        slot.isShared = false;
        tableOf(slot.tenantId, slot.collection).set(slot.key, slot);
      }
    },

    /** Registers a document of this batch. Its content is available after `load`. */
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
      unloaded.push(slot);
      return slot;
    },

    load: async (): Promise<void> => {
      if (unloaded.length === 0) return;
      const wanted = unloaded;
      unloaded = [];
      const loaded = await generation.load(wanted);
      wanted.forEach((slot, i) => (slot.document = loaded[i]));
    },

    /** The documents that the batch changed. Valid until the next batch changes them. */
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
