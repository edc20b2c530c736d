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

/** By tenant, collection and key. Nested, because building one name from the three would cost more than the look-ups. */
type Slots = Map<string, Map<string, Map<string, Slot>>>;

const inner = <V>(map: Map<string, Map<string, V>>, key: string): Map<string, V> => {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = new Map<string, V>();
  map.set(key, made);
  return made;
};

/** About so many documents are kept, and those of the last batch anyhow: the next one often needs them. */
const MOST_KEPT = 2_048;

/**
 * The documents of a generation as one run sees them: those of its last control state, with everything on top that the
 * run has written. It is valid as long as every commit of the run succeeds; after one that did not, it must be discarded.
 */
export const documentCache = (generation: Pick<Target, 'load'>, mostKept = MOST_KEPT) => {
  /** Documents that were touched lately, and those from before that: what is not touched again is soon dropped. */
  let recent: Slots = new Map();
  let older: Slots = new Map();
  /** Those of the tenant that was touched last: all documents of an event are of one tenant. */
  let last: { readonly tenantId: string; readonly slots: Map<string, Map<string, Slot>> } | undefined;
  let kept: Slot[] = [];
  let unknown: Slot[] = [];

  return {
    /** The next batch begins. */
    begin: (): void => {
      unknown = [];
      if (kept.length <= mostKept) return;
      older = recent;
      recent = new Map();
      last = undefined;
      kept = [];
    },

    /** A document of this batch. Its content is known after `load`. */
    slot: (tenantId: string, collection: string, key: string): Slot => {
      if (last?.tenantId !== tenantId) last = { tenantId, slots: inner(recent, tenantId) };
      const slots = inner(last.slots, collection);
      const known = slots.get(key);
      if (known !== undefined) return known;
      const former = older.get(tenantId)?.get(collection)?.get(key);
      const slot = former ?? { tenantId, collection, key, document: undefined, isWritten: false };
      if (former === undefined) unknown.push(slot);
      slots.set(key, slot);
      kept.push(slot);
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
      for (const slot of kept) {
        if (!slot.isWritten) continue;
        slot.isWritten = false;
        writes.push(slot);
      }
      return writes;
    },
  };
};

export type DocumentCache = ReturnType<typeof documentCache>;
