import type { Document } from '../../projections/projector';
import type { DocumentKey, Generation, Write } from '../read-models/read-models';
import { keyFilter, type KeyFilter, type KeyHash } from './key-filter';

/** A document that a batch touches: loaded with all others at once, then changed in memory. */
export interface Slot extends DocumentKey {
  document: Document | undefined;
  isWritten: boolean;
  /** The generation has certainly not got it: so says the filter, and this is what it must be told once it is written. */
  newAs: KeyHash | undefined;
  /** The last batch that touched it. */
  batch: number;
}

/** Changes a document in memory. */
export const write = (slot: Slot, document: Document | undefined): void => {
  slot.document = document;
  slot.isWritten = true;
};

/** By tenant, collection and key. */
type Shelf = Map<string, Drawers>;
type Drawers = Map<string, Map<string, Slot>>;

interface Near {
  readonly tenantId: string;
  readonly now: Drawers;
  readonly before: Drawers | undefined;
}

/** About so many documents are remembered, and those of the last batch anyhow: the next one often needs them. */
const MOST_KEPT = 2_048;

const inner = <K, V>(map: Map<K, Map<string, V>>, key: K): Map<string, V> => {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = new Map<string, V>();
  map.set(key, made);
  return made;
};

const isNew = (written: KeyFilter, slot: Slot): boolean => {
  const hash = written.hash(slot);
  if (written.mayHave(hash)) return false;
  slot.newAs = hash;
  return true;
};

/**
 * The documents of a generation as one run sees them: those of its last control state, with everything on top that the
 * run has written or is just writing. It holds as long as every commit of the run succeeds; after one that did not, it
 * must be thrown away. Documents of the last batch are always kept, so the next one may be folded while that is still
 * being written. `isEmpty`: nothing is in the generation yet, so what the run has not written need not be looked for.
 */
export const workspace = (generation: Generation, isEmpty = false, mostKept = MOST_KEPT) => {
  const written = isEmpty ? keyFilter() : undefined;
  /** What was touched lately, and before that: what is not touched again is soon forgotten. */
  let shelf: Shelf = new Map();
  let before: Shelf = new Map();
  /** What both have of the tenant that was asked for last: many in a row ask for the same. */
  let near: Near | undefined;
  let kept = 0;
  let batch = 0;
  let touched: Slot[] = [];
  let unknown: Slot[] = [];

  const nearTo = (tenantId: string): Near => {
    if (near?.tenantId !== tenantId)
      near = { tenantId, now: inner(shelf, tenantId), before: before.get(tenantId) };
    return near;
  };

  const place = (now: Drawers, slot: Slot): void => {
    inner(now, slot.collection).set(slot.key, slot);
    kept += 1;
  };

  const touch = (slot: Slot): Slot => {
    if (slot.batch === batch) return slot;
    slot.batch = batch;
    touched.push(slot);
    return slot;
  };

  return {
    /** The next batch begins. */
    begin: (): void => {
      if (kept > mostKept) {
        before = shelf;
        shelf = new Map();
        near = undefined;
        kept = 0;
      }
      batch += 1;
      touched = [];
      unknown = [];
    },

    slot: (tenantId: string, collection: string, key: string): Slot => {
      const { now, before: then } = nearTo(tenantId);
      const known = now.get(collection)?.get(key);
      if (known !== undefined) return touch(known);
      const former = then?.get(collection)?.get(key);
      if (former !== undefined) {
        place(now, former);
        return touch(former);
      }
      const made = {
        tenantId,
        collection,
        key,
        document: undefined,
        isWritten: false,
        newAs: undefined,
        batch: -1,
      };
      place(now, made);
      unknown.push(made);
      return touch(made);
    },

    load: async (): Promise<void> => {
      const wanted = written === undefined ? unknown : unknown.filter((slot) => !isNew(written, slot));
      if (wanted.length === 0) return;
      const loaded = await generation.load(wanted);
      wanted.forEach((slot, i) => (slot.document = loaded[i]));
    },

    /** What the batch has changed. What was not there and is not there now is no change. */
    writes: (): readonly Write[] => {
      const changed = touched.filter(
        ({ isWritten, newAs, document }) => isWritten && (newAs === undefined || document !== undefined),
      );
      return changed.map((slot) => {
        const { tenantId, collection, key, document, newAs } = slot;
        slot.isWritten = false;
        slot.newAs = undefined;
        if (newAs !== undefined) written?.add(newAs);
        return { tenantId, collection, key, document, isNew: newAs !== undefined };
      });
    },
  };
};

export type Workspace = ReturnType<typeof workspace>;
