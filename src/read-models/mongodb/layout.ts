import type { Document } from '../../../projections/projector';
import { generationName, generationNamed, type GenerationId } from '../read-models';
import { isPlainText, storedText, textOf } from '../stored-text';

/**
 * How generations map to collections. Each has a control document in `read_models.controls`, and its collections are named
 * `<generation>.<collection>`.
 */
export const CONTROLS = 'read_models.controls';
export const REGISTRY = 'read_models.registry';

export const collectionName = (id: GenerationId, collection: string): string =>
  `${generationName(id)}.${collection}`;

/** The generation that a collection belongs to, if it belongs to one. */
export const generationOf = (collection: string): GenerationId | undefined =>
  collection.includes('.') ? generationNamed(collection.slice(0, collection.indexOf('.'))) : undefined;

/** A stored document. Without `doc` it is a tombstone. */
export interface Stored {
  readonly _id: string;
  /** The number of the commit that wrote it. */
  readonly n: number;
  /** The tenant, which is the first field of every index. */
  readonly t?: string;
  readonly doc?: Document;
  /** The whole document as JSON, where BSON would not preserve it; then `doc` has only its indexed fields. */
  readonly text?: string;
}

/** The control document of a generation: see `ControlDocument`. */
export interface StoredControl {
  readonly _id: string;
  readonly log: string;
  readonly n: number;
  readonly applied_n: number;
  readonly to?: { readonly position: string; readonly event_id: string };
  readonly applied?: string;
  readonly writes?: string;
}

/**
 * Every collection has this tombstone from the start. Where it is missing, the collection was dropped, even if a later
 * write has created it again: the server itself cannot tell a dropped collection from an empty one.
 */
export const FIRST: Stored = { _id: '', n: 0 };

/** Separates tenant and key. It sorts before every character of a stored tenant, so ids sort by tenant and key. */
const SPACE = ' ';
const AFTER_SPACE = '!';
const ESCAPED_SPACE = '\u0001\u0004';

export const storedTenant = (tenantId: string): string =>
  storedText(tenantId).replaceAll(SPACE, ESCAPED_SPACE);

export const idOf = (tenantId: string, key: string): string =>
  `${storedTenant(tenantId)}${SPACE}${storedText(key)}`;

/** The range of a tenant's document ids: from the first, up to but excluding the second. */
export const idsOf = (tenantId: string): readonly [string, string] => {
  const tenant = storedTenant(tenantId);
  return [`${tenant}${SPACE}`, `${tenant}${AFTER_SPACE}`];
};

export const partsOf = (id: string): { readonly tenantId: string; readonly key: string } => {
  const at = id.indexOf(SPACE);
  return {
    tenantId: textOf(id.slice(0, at).replaceAll(ESCAPED_SPACE, SPACE)),
    key: textOf(id.slice(at + 1)),
  };
};

/** MongoDB allows 100 levels of nesting, some of which are ours. */
const MAX_LEVELS = 60;
/** BSON can be several times larger than JSON, and a document is limited to 16 MB. */
const MAX_PLAIN_BYTES = 1_048_576;

/** Not a name with a special meaning to the server, the driver or JavaScript. */
const isPlainName = (name: string): boolean =>
  name !== '' && name !== '_bsontype' && name !== '__proto__' && !/[$.]/.test(name) && isPlainText(name);

/** Whether BSON preserves it exactly. */
const isPlain = (value: unknown, levels: number): boolean => {
  if (typeof value === 'string') return isPlainText(value);
  if (typeof value !== 'object' || value === null) return true;
  if (levels === 0) return false;
  if (Array.isArray(value)) return value.every((element) => isPlain(element, levels - 1));
  return Object.keys(value).every(
    (name) => isPlainName(name) && isPlain((value as Document)[name], levels - 1),
  );
};

const isScalar = (value: unknown): boolean => typeof value !== 'object' || value === null;

/** Not with arrays in indexed fields, since those would be indexed by element. */
const isStoredAsBson = (document: Document, json: string, indexed: readonly string[]): boolean =>
  Buffer.byteLength(json) <= MAX_PLAIN_BYTES &&
  indexed.every((field) => isScalar(document[field])) &&
  isPlain(document, MAX_LEVELS);

const indexedOnly = (document: Document, indexed: readonly string[]): Document =>
  Object.fromEntries(
    indexed
      .filter((field) => Object.hasOwn(document, field) && isScalar(document[field]))
      .map((field) => {
        const value = document[field];
        return [field, typeof value === 'string' ? storedText(value) : value];
      }),
  );

export const stored = (
  n: number,
  write: { readonly tenantId: string; readonly document: Document | undefined; readonly json: string },
  /** The fields of all indexes of its collection. */
  indexed: readonly string[],
): Omit<Stored, '_id'> => {
  const { tenantId, document, json } = write;
  if (document === undefined) return { n };
  const t = storedTenant(tenantId);
  if (isStoredAsBson(document, json, indexed)) return { n, t, doc: document };
  return { n, t, doc: indexedOnly(document, indexed), text: json };
};

/** Undefined: it does not exist, or was deleted. */
export const documentOf = (found: Pick<Stored, 'doc' | 'text'> | undefined): Document | undefined =>
  found?.text === undefined ? found?.doc : (JSON.parse(found.text) as Document);
