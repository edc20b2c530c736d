import type { Document } from '../../projections/projector';
import type { DocumentKey, Generation, Write } from '../read-models/read-models';

/** A document of the batch: loaded with all others at once, then changed in memory. */
export interface Slot extends DocumentKey {
  document: Document | undefined;
  isWritten: boolean;
}

/** Changes a document in memory. */
export const write = (slot: Slot, document: Document | undefined): void => {
  slot.document = document;
  slot.isWritten = true;
};

/** The documents that a batch touches. */
export const workspace = () => {
  const slots = new Map<string, Slot>();
  return {
    slot: (tenantId: string, collection: string, key: string): Slot => {
      const text = `${tenantId} ${collection} ${key}`;
      const known = slots.get(text);
      if (known !== undefined) return known;
      const made = { tenantId, collection, key, document: undefined, isWritten: false };
      slots.set(text, made);
      return made;
    },
    load: async (generation: Generation): Promise<void> => {
      const wanted = [...slots.values()];
      const loaded = await generation.load(wanted);
      wanted.forEach((slot, i) => (slot.document = loaded[i]));
    },
    writes: (): readonly Write[] =>
      [...slots.values()]
        .filter((slot) => slot.isWritten)
        .map(({ tenantId, collection, key, document }) => ({ tenantId, collection, key, document })),
  };
};

export type Workspace = ReturnType<typeof workspace>;
