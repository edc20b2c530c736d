import {
  fieldsOfIndex,
  numberingOf,
  type Collection,
  type Document,
  type LineEnd,
  type LineReference,
  type Reference,
  type TenantLine,
} from '../../projections/projector';
import { isSameProgress, type DocumentKey, type Progress } from '../read-models/read-models';

/** A document that events touch: loaded together with the others, then changed in memory. */
export interface Slot extends DocumentKey {
  /** As it is stored. */
  stored: Document | undefined;
  document: Document | undefined;
}

/** How the rows of an index are numbered. */
type Numbering = ReturnType<typeof numberingOf>;

/** By collection and index. */
type Numberings = ReadonlyMap<string, ReadonlyMap<string, Numbering>>;

export const numberingsIn = (collections: readonly Collection[]): Numberings =>
  new Map(
    collections.map((collection) => {
      const numbering = (index: string): readonly [string, Numbering] => {
        const equal = fieldsOfIndex(collection, index).slice(0, -1);
        return [index, numberingOf(collection, { index, equal })];
      };
      return [collection.name, new Map(Object.keys(collection.numbered ?? {}).map(numbering))];
    }),
  );

/** The end of a line, likewise. */
export interface EndSlot extends TenantLine {
  readonly numbering: Numbering;
  end: LineEnd;
}

/** What is known of a tenant: some of its documents and ends of its lines, as of its progress. */
export interface KnownTenant {
  readonly progress: Progress | undefined;
  readonly slots: Map<string, Slot>;
  readonly ends: Map<string, EndSlot>;
}

/** The tenants that were used last are kept, each with so many documents and ends at most. */
const MAX_TENANTS = 512;
const MAX_KEPT = 256;

export const NO_END: LineEnd = { number: 0, value: undefined };

const lineKey = ({ collection, index, equal }: LineReference): string =>
  `${collection} ${index} ${equal.length > 1 ? JSON.stringify(equal) : equal.join()}`;

/** What the events of one commit touch of a tenant: what is not known is to be loaded. */
export const touching = (known: KnownTenant, tenantId: string, numberings: Numberings) => {
  const [slots, ends] = [new Map<string, Slot>(), new Map<string, EndSlot>()];
  return {
    /** To be loaded. */
    slots,
    ends,
    slotOf: ({ collection, key }: Reference): Slot => {
      const name = `${collection} ${key}`;
      const found = known.slots.get(name) ?? slots.get(name);
      if (found !== undefined) return found;
      const slot = { tenantId, collection, key, stored: undefined, document: undefined };
      slots.set(name, slot);
      return slot;
    },
    endOf: (line: LineReference): EndSlot => {
      const name = lineKey(line);
      const found = known.ends.get(name) ?? ends.get(name);
      if (found !== undefined) return found;
      const { collection, index, equal } = line;
      const numbering = numberings.get(collection)?.get(index);
      if (numbering === undefined) throw new Error(`The index ${index} of ${collection} has no lines.`);
      const slot = { tenantId, collection, index, equal, numbering, end: NO_END };
      ends.set(name, slot);
      return slot;
    },
  };
};

export type Touched = ReturnType<typeof touching>;

/** What one process knows of the tenants of a set, as long as it is so. */
export const knownTenants = (collections: readonly Collection[]) => {
  const ofRows = new Set(collections.flatMap(({ name, numbered }) => (numbered === undefined ? [] : name)));
  /** Least recently used first. */
  const tenants = new Map<string, KnownTenant>();
  return {
    find: (tenantId: string): KnownTenant | undefined => tenants.get(tenantId),
    forget: (tenantId: string): boolean => tenants.delete(tenantId),
    /** Takes a tenant out, to change it. */
    take: (tenantId: string, progress: Progress | undefined): KnownTenant => {
      const found = tenants.get(tenantId);
      tenants.delete(tenantId);
      if (found !== undefined && isSameProgress(found.progress, progress)) return found;
      return { progress, slots: new Map(), ends: new Map() };
    },
    /** A row is written once, and a line of one row seldom goes on: neither is needed again soon. */
    keep: (tenantId: string, known: KnownTenant, touched?: Pick<Touched, 'slots' | 'ends'>): void => {
      const { slots, ends } = known;
      touched?.slots.forEach((slot, name) => {
        if (!ofRows.has(slot.collection)) slots.set(name, slot);
      });
      touched?.ends.forEach((slot, name) => {
        if (slot.end.number > 1) ends.set(name, slot);
      });
      if (slots.size > MAX_KEPT) slots.clear();
      if (ends.size > MAX_KEPT) ends.clear();
      tenants.delete(tenantId);
      tenants.set(tenantId, known);
      if (tenants.size <= MAX_TENANTS) return;
      const [oldest = ''] = tenants.keys();
      tenants.delete(oldest);
    },
  };
};
