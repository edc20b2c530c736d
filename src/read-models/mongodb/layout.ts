import type { Collection, Document } from '../../../projections/projector';
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
  readonly n: number;
  readonly to?: { readonly position: string; readonly event_id: string };
  readonly parked: number;
  readonly renewed_at: Date;
  readonly next?: string;
  readonly superseded_at?: Date;
  readonly removed?: true;
  /** Chosen by whoever committed last, to recognize a commit whose outcome was not reported. */
  readonly commit_id?: string;
  /** Counts attempts to make it a successor, so that they conflict with its removal. */
  readonly touched?: number;
}

/** The set where the chain of a version begins. */
export interface StoredRoot {
  readonly _id: string;
  readonly live: string;
}

export interface StoredLease {
  /** The version. */
  readonly _id: string;
  readonly holder: string;
  /** Tells this holder from others with the same name. */
  readonly holder_id: string;
  /** The session of its transactions. */
  readonly session: unknown;
  readonly renewed_at: Date;
}

export interface Stored {
  /** Always made by `idOf`, because the server compares objects with their order of members. */
  readonly _id: { readonly tenant: string; readonly key: string };
  readonly doc: Document;
  /** The whole document as JSON, where BSON would not preserve it; then `doc` has only its indexed fields. */
  readonly text?: string;
}

export const controlOf = (stored: StoredControl): Control => {
  const { n, to, log, parked, renewed_at, next, superseded_at, removed } = stored;
  return {
    n,
    ...(to === undefined ? {} : { to: { position: to.position, eventId: to.event_id } }),
    log,
    parked,
    renewedAt: renewed_at.toISOString(),
    ...(next === undefined ? {} : { next }),
    ...(superseded_at === undefined ? {} : { supersededAt: superseded_at.toISOString() }),
    ...(removed === undefined ? {} : { removed }),
  };
};

export const ABSENT = { $exists: false } as const;

/** Only then may it be written. */
export const isOpen = (control: StoredControl | null): control is StoredControl =>
  control !== null && control.next === undefined && control.removed === undefined;

export const idOf = (tenantId: string, key: string): Stored['_id'] => ({ tenant: tenantId, key });

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
export const indexedFields = ({ indexes, numbered = {} }: Collection): readonly string[] => [
  ...new Set([...Object.values(indexes).flat(), ...Object.values(numbered)]),
];

/** Lists in indexed fields would be indexed by element. */
export const stored = (document: Document, indexed: readonly string[]): Pick<Stored, 'doc' | 'text'> => {
  const isSimple = indexed.every((field) => isScalar(document[field])) && isPlain(document, MAX_LEVELS);
  const text = JSON.stringify(document);
  if (isSimple && text.length <= MAX_PLAIN_BYTES) return { doc: document };
  const fields = indexed.filter((field) => Object.hasOwn(document, field) && isScalar(document[field]));
  return { doc: Object.fromEntries(fields.map((field) => [field, document[field]])), text };
};

export const documentOf = ({ doc, text }: Pick<Stored, 'doc' | 'text'>): Document =>
  text === undefined ? doc : (JSON.parse(text) as Document);
