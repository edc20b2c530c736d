import type { Document } from '../../projections/projector';
import type { DocumentKey, Target, Write } from '../read-models/read-models';

/** A document that a batch touches: loaded with all others at once, then changed in memory. */
export interface Slot extends DocumentKey {
  document: Document | undefined;
  isWritten: boolean;
}

/** Changes a document in memory. */
export const write = (slot: Slot, document: Document | undefined): void => {
  slot.document = document;
  slot.isWritten = true;
};

/** About so many documents are kept, and those of the last batch anyhow: the next one often needs them. */
const MOST_KEPT = 2_048;

/**
 * The documents of a generation as one run sees them: those of its last control state, with everything on top that the
 * run has written. It is valid as long as every commit of the run succeeds; after one that did not, it must be discarded.
 */
export const documentCache = (generation: Pick<Target, 'load'>, mostKept = MOST_KEPT) => {
  /** Documents that were touched lately, and those from before that: what is not touched again is soon dropped. */
  let recent = new Map<string, Slot>();
  let older = new Map<string, Slot>();
  let unknown: Slot[] = [];

  return {
    /** The next batch begins. */
    begin: (): void => {
      unknown = [];
      if (recent.size <= mostKept) return;
      older = recent;
      recent = new Map();
    },

    /** A document of this batch. Its content is known after `load`. */
    slot: (tenantId: string, collection: string, key: string): Slot => {
      const name = `${tenantId} ${collection} ${key}`;
      const known = recent.get(name);
      if (known !== undefined) return known;
      const former = older.get(name);
      const slot = former ?? { tenantId, collection, key, document: undefined, isWritten: false };
      if (former === undefined) unknown.push(slot);
      recent.set(name, slot);
      return slot;
    },

    load: async (): Promise<void> => {
      if (unknown.length === 0) return;
      const loaded = await generation.load(unknown);
      unknown.forEach((slot, i) => (slot.document = loaded[i]));
    },

    /** What the batch has changed. */
    writes: (): readonly Write[] => {
      const writes: Write[] = [];
      for (const slot of recent.values()) {
        if (!slot.isWritten) continue;
        slot.isWritten = false;
        const { tenantId, collection, key, document } = slot;
        writes.push({ tenantId, collection, key, document });
      }
      return writes;
    },
  };
};

export type DocumentCache = ReturnType<typeof documentCache>;
