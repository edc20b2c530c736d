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
  /** The documents of this batch, and those of them that are not loaded yet. */
  const touched = new Set<Slot>();
  let unloaded: Slot[] = [];
  return {
    /** Starts the next batch. */
    begin: (): void => {
      touched.clear();
      unloaded = [];
      if (kept.size > maxKept) kept.clear();
    },
    /** Registers a document of this batch. Its content is available after `load`. */
    slot: (key: DocumentKey): Slot => {
      const name = `${key.tenantId} ${key.collection} ${key.key}`;
      const known = kept.get(name);
      const slot = known ?? { ...key, document: undefined, isWritten: false };
      if (known === undefined) {
        kept.set(name, slot);
        unloaded.push(slot);
      }
      touched.add(slot);
      return slot;
    },
    load: async (): Promise<void> => {
      const wanted = unloaded;
      unloaded = [];
      if (wanted.length === 0) return;
      const loaded = await set.load(wanted);
      wanted.forEach((slot, i) => (slot.document = loaded[i]));
    },
    /** The documents that the batch changed. Valid until the next batch changes them. */
    writes: (): readonly Write[] => {
      const writes = [...touched].filter(({ isWritten }) => isWritten);
      for (const slot of writes) slot.isWritten = false;
      return writes;
    },
  };
};

export type DocumentCache = ReturnType<typeof documentCache>;
