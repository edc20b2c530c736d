import { hash } from 'node:crypto';
import { PROGRESS, fieldsOfIndex, type Collection, type Document } from '../../../projections/projector';
import type { Head } from '../../event-log/event-log';
import type { MongoConnection } from '../../mongodb/connection';
import type { Control } from '../read-models';

/**
 * How sets map to collections. Every set has a document in `read_model_sets`, and one collection `<name>_<id of the set>`
 * for each declared one, so that removing a set drops collections.
 */
export const controlsIn = ({ db }: MongoConnection) => db.collection<StoredControl>('read_model_sets');
export const rootsIn = ({ db }: MongoConnection) => db.collection<StoredRoot>('read_model_roots');
export const leasesIn = ({ db }: MongoConnection) => db.collection<StoredLease>('read_model_leases');

export const collectionName = (set: string, collection: string): string => `${collection}_${set}`;

/** The id of the set that a collection belongs to. Undefined: it belongs to none. */
export const setOfCollection = (name: string): string | undefined => /_([0-9a-f]{16})$/.exec(name)?.[1];

/** The control state of a set. */
export interface StoredControl {
  readonly _id: string;
  readonly version: string;
  readonly log: string;
  readonly to?: Head;
  readonly marks: number;
  readonly renewed_at: Date;
  readonly next?: string;
  readonly superseded_at?: Date;
  readonly removed?: true;
  /** Counts attempts to make it a successor, so that they conflict with its removal. */
  readonly touched?: number;
}

/** The set where the chain of a version begins. */
export interface StoredRoot {
  readonly _id: string;
  readonly live: string;
}

interface StoredLease {
  /** The version. */
  readonly _id: string;
  readonly holder: string;
  /** Tells this holder from others with the same name. */
  readonly holder_id: string;
  readonly renewed_at: Date;
}

export interface Stored {
  /** Always made by `idOf`, because the server compares objects with their order of members. */
  readonly _id: { readonly tenant: string; readonly key: string };
  /** The lines that it is in, as short texts: one query finds the ends of any number of lines, of any tenants. */
  readonly lines?: Readonly<Record<string, string>>;
  readonly doc: Document;
  /** The whole document as JSON, where BSON would not preserve it; then `doc` has only its indexed fields. */
  readonly text?: string;
}

/**
 * Every commit of tenants goes through one of these documents, drawn at random, so that a switch can keep all others out
 * and two commits seldom conflict. They are beside the progress, of no tenant.
 */
export interface StoredGate extends Pick<Stored, '_id'> {
  readonly n: number;
  /** The furthest event committed through it. */
  readonly furthest?: Head;
  /** Chosen by the switch that has closed it. */
  readonly closed_by?: string;
  /** The set has a successor. */
  readonly stays_closed?: true;
  /** When that switch was last at work. Only the first gate has it. */
  readonly closed_at?: Date;
}

export const gatesIn = ({ db }: MongoConnection, set: string) =>
  db.collection<StoredGate>(collectionName(set, PROGRESS.name));

export const idOf = (tenantId: string, key: string): Stored['_id'] => ({ tenant: tenantId, key });

export const GATES: readonly Stored['_id'][] = Array.from({ length: 32 }, (_, i) =>
  idOf('', `gate-${String(i).padStart(2, '0')}`),
);

export const FIRST_GATE = GATES[0] as StoredGate['_id'];

/** Comparable by the server: first the positions. */
export const storedHead = ({ position, eventId }: Head): Head => ({ position, eventId });

export const controlOf = (stored: StoredControl): Control => {
  const { to, log, marks, renewed_at, next, superseded_at, removed } = stored;
  const given = { ...(to && { to }), ...(next !== undefined && { next }), ...(removed && { removed }) };
  const left = superseded_at === undefined ? {} : { supersededAt: superseded_at.toISOString() };
  return { log, marks, renewedAt: renewed_at.toISOString(), ...given, ...left };
};

export const ABSENT = { $exists: false } as const;

/** Only then may it be written. */
export const IS_OPEN = { next: ABSENT, removed: ABSENT } as const;

export const isOpen = (control: StoredControl | null): control is StoredControl =>
  control !== null && control.next === undefined && control.removed === undefined;

/** By the clock of the server. A time in the future was written before that clock was set back. */
export const isWithin = (field: string, ms: number): object => ({
  $expr: { $lt: [{ $abs: { $subtract: ['$$NOW', `$${field}`] } }, ms] },
});

/** MongoDB allows 100 levels of nesting, some of which are ours. */
const MAX_LEVELS = 60;
/** BSON can be several times larger than JSON, and a document is limited to 16 MB. */
const MAX_PLAIN_BYTES = 1_048_576;

/** Not a name with a special meaning to the server, the driver or JavaScript, nor one that BSON cannot hold. */
const isPlainName = (name: string): boolean =>
  name !== '' && name !== '_bsontype' && name !== '__proto__' && !/[$.\0]/.test(name);

/** Whether BSON preserves it exactly. */
const isPlain = (value: unknown, levels: number): boolean => {
  if (typeof value !== 'object' || value === null) return true;
  if (levels === 0) return false;
  if (Array.isArray(value)) return value.every((element) => isPlain(element, levels - 1));
  return Object.keys(value).every(
    (name) => isPlainName(name) && isPlain((value as Document)[name], levels - 1),
  );
};

const isScalar = (value: unknown): boolean => typeof value !== 'object' || value === null;

/** The fields of all indexes of a collection. */
const indexedFields = ({ indexes, numbered = {} }: Collection): readonly string[] => [
  ...new Set([...Object.values(indexes).flat(), ...Object.values(numbered)]),
];

/** So many characters have 132 bits, so two lines never have the same text. */
const LINE_LENGTH = 22;

/** A line of a tenant, as a short text, since each row has one for every index that numbers lines, twice. */
export const lineText = (tenantId: string, equal: readonly unknown[]): string =>
  hash('sha256', JSON.stringify([tenantId, ...equal]), 'base64').slice(0, LINE_LENGTH);

/** A document without the first field of an index is not in its lines. */
const linesOf = (collection: Collection, tenantId: string, document: Document): Pick<Stored, 'lines'> => {
  const lines: Record<string, string> = {};
  for (const index of Object.keys(collection.numbered ?? {})) {
    const fields = fieldsOfIndex(collection, index);
    const isIn = (document[fields[0] as string] ?? undefined) !== undefined;
    if (isIn) lines[index] = lineText(tenantId, fields.slice(0, -1).map((field) => document[field])); // prettier-ignore
  }
  return collection.numbered === undefined ? {} : { lines };
};

const contentOf = (document: Document, indexed: readonly string[]): Pick<Stored, 'doc' | 'text'> => {
  const isSimple = indexed.every((field) => isScalar(document[field])) && isPlain(document, MAX_LEVELS);
  const text = JSON.stringify(document);
  if (isSimple && text.length <= MAX_PLAIN_BYTES) return { doc: document };
  // Lists in indexed fields would be indexed by element.
  const fields = indexed.filter((field) => Object.hasOwn(document, field) && isScalar(document[field]));
  return { doc: Object.fromEntries(fields.map((field) => [field, document[field]])), text };
};

/** How documents of a collection are stored. */
export const storingIn = (collection: Collection) => {
  const indexed = indexedFields(collection);
  return (tenantId: string, key: string, document: Document): Stored => ({
    _id: idOf(tenantId, key),
    ...linesOf(collection, tenantId, document),
    ...contentOf(document, indexed),
  });
};

export const documentOf = ({ doc, text }: Pick<Stored, 'doc' | 'text'>): Document =>
  text === undefined ? doc : (JSON.parse(text) as Document);
