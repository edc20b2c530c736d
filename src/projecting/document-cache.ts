import type { Document } from '../../projections/projector';
import type { DocumentKey, ReadModelSet, Write } from '../read-models/read-models';

/** A document that a batch touches: loaded together with the others, then changed in memory. */
export interface Slot extends DocumentKey {
  document: Document | undefined;
  isWritten: boolean;
}

/** Above this number, the next batch begins with none. */
const MAX_KEPT = 4_096;

const within = <V>(outer: Map<string, Map<string, V>>, key: string): Map<string, V> => {
  const inner = outer.get(key) ?? new Map<string, V>();
  if (inner.size === 0) outer.set(key, inner);
  return inner;
};

/**
 * The documents of a set as one projection sees them: as of its last commit, plus everything that it has written since.
 * Discard it unless every commit since was its own.
 */
export const documentCache = (set: Pick<ReadModelSet, 'load'>, maxKept = MAX_KEPT) => {
  /** By tenant, collection and key: hashing one text of all three would cost more than applying an event. */
  const kept = new Map<string, Map<string, Map<string, Slot>>>();
  let size = 0;
  /** The documents of this batch that are not loaded yet. */
  let unloaded: Slot[] = [];
  let written: Slot[] = [];
  return {
    /** Starts the next batch. */
    begin: (): void => {
      [unloaded, written] = [[], []];
      if (size <= maxKept) return;
      kept.clear();
      size = 0;
    },
    /** Registers a document of this batch. Its content is available after `load`. */
    slot: (key: DocumentKey): Slot => {
      const keys = within(within(kept, key.tenantId), key.collection);
      const known = keys.get(key.key);
      if (known !== undefined) return known;
      const slot: Slot = { ...key, document: undefined, isWritten: false };
      keys.set(key.key, slot);
      unloaded.push(slot);
      size += 1;
      return slot;
    },
    load: async (): Promise<void> => {
      const wanted = unloaded;
      unloaded = [];
      if (wanted.length === 0) return;
      const loaded = await set.load(wanted);
      wanted.forEach((slot, i) => (slot.document = loaded[i]));
    },
    write: (slot: Slot, document: Document | undefined): void => {
      slot.document = document;
      if (slot.isWritten) return;
      slot.isWritten = true;
      written.push(slot);
    },
    /** The documents that the batch changed. Valid until the next batch changes them. */
    writes: (): readonly Write[] => {
      for (const slot of written) slot.isWritten = false;
      return written;
    },
  };
};

export type DocumentCache = ReturnType<typeof documentCache>;
