import type { Document } from '../../projections/projector';
import type { DocumentKey, ReadModelSet, Write } from '../read-models/read-models';

/** A document that a batch touches: loaded together with the others, then changed in memory. */
export interface Slot extends DocumentKey {
  document: Document | undefined;
  isWritten: boolean;
}

export const write = (slot: Slot, document: Document | undefined): void => {
  slot.document = document;
  slot.isWritten = true;
};

/** Above this number, the next batch begins with none. */
const MAX_KEPT = 4_096;

/**
 * The documents of a set as one projection sees them: as of its last commit, plus everything that it has written since.
 * Discard it unless every commit since was its own.
 */
export const documentCache = (set: Pick<ReadModelSet, 'load'>, maxKept = MAX_KEPT) => {
  const kept = new Map<string, Slot>();
  /** The documents of this batch, possibly repeated, and those of them that are not loaded yet. */
  let touched: Slot[] = [];
  let unloaded: Slot[] = [];

  return {
    /** Starts the next batch. */
    begin: (): void => {
      touched = [];
      unloaded = [];
      if (kept.size > maxKept) kept.clear();
    },

    /** Registers a document of this batch. Its content is available after `load`. */
    slot: (of: DocumentKey): Slot => {
      const name = `${of.tenantId} ${of.collection} ${of.key}`;
      const known = kept.get(name);
      const slot = known ?? { ...of, document: undefined, isWritten: false };
      if (known === undefined) {
        kept.set(name, slot);
        unloaded.push(slot);
      }
      touched.push(slot);
      return slot;
    },

    load: async (): Promise<void> => {
      if (unloaded.length === 0) return;
      const wanted = unloaded;
      unloaded = [];
      const loaded = await set.load(wanted);
      wanted.forEach((slot, i) => (slot.document = loaded[i]));
    },

    /** The documents that the batch changed. Valid until the next batch changes them. */
    writes: (): readonly Write[] => {
      const writes = [...new Set(touched)].filter(({ isWritten }) => isWritten);
      for (const slot of writes) slot.isWritten = false;
      return writes;
    },
  };
};

export type DocumentCache = ReturnType<typeof documentCache>;
