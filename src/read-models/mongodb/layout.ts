import type { Document } from '../../../projections/projector';
import { generationName, type GenerationId } from '../read-models';
import { isPlainText, storedText, textOf } from '../stored-text';

/**
 * How generations become collections. Each has a control document in `read_models.generations`, and its collections are named
 * `<generation>.<incarnation>.<collection>`: a generation that is made again after it was dropped begins another incarnation, and shares
 * nothing with what is left of the one before.
 */
export const CONTROLS = 'read_models.generations';
export const REGISTRY = 'read_models.registry';

export const collectionName = (id: GenerationId, incarnation: string, collection: string): string =>
  `${generationName(id)}.${incarnation}.${collection}`;

/** The incarnation that a collection belongs to. Undefined: it is not a generation's. */
export const incarnationIn = (name: string): string | undefined =>
  /^[a-z_]+_v[0-9]+_[0-9]+\.([0-9a-f]+)\.[a-z_]+$/.exec(name)?.[1];

/** A document as it is stored. Without `doc` it is a tombstone. */
export interface Stored {
  readonly _id: string;
  /** The number of the commit that wrote it. */
  readonly n: number;
  /** The tenant: the first field of every index. */
  readonly t?: string;
  readonly doc?: Document;
  /** The whole document as JSON, where BSON would not keep it; then `doc` has its indexed fields only. */
  readonly text?: string;
}

/** Between tenant and key. It is below everything that a stored tenant may hold, so ids are ordered by tenant and key. */
const SPACE = ' ';
const AFTER_SPACE = '!';
const ESCAPED_SPACE = '\u0001\u0004';

export const storedTenant = (tenantId: string): string =>
  storedText(tenantId).replaceAll(SPACE, ESCAPED_SPACE);

export const idOf = (tenantId: string, key: string): string =>
  `${storedTenant(tenantId)}${SPACE}${storedText(key)}`;

/** The ids of a tenant's documents are from the first of these on, and before the second. */
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

/** MongoDB takes documents of a hundred levels, and some of them are ours. */
const MAX_LEVELS = 60;
/** BSON can be several times as large as JSON, and a document has at most 16 MB. */
const MAX_PLAIN_BYTES = 1_048_576;

/** Names with a meaning of their own to the server, the driver or JavaScript. */
const isPlainName = (name: string): boolean =>
  name !== '' && name !== '_bsontype' && name !== '__proto__' && !/[$.]/.test(name) && isPlainText(name);

/** BSON keeps it as it is. */
const isPlain = (value: unknown, levels: number): boolean => {
  if (typeof value === 'string') return isPlainText(value);
  if (typeof value !== 'object' || value === null) return true;
  if (levels === 0) return false;
  if (Array.isArray(value)) return value.every((one) => isPlain(one, levels - 1));
  return Object.keys(value).every(
    (name) => isPlainName(name) && isPlain((value as Document)[name], levels - 1),
  );
};

const isScalar = (value: unknown): boolean => typeof value !== 'object' || value === null;

export interface Indexed {
  /** The fields of all its indexes. */
  readonly fields: readonly string[];
}

/** A list in an indexed field would be indexed element by element. */
const isStoredAsItIs = (document: Document, json: string, { fields }: Indexed): boolean =>
  Buffer.byteLength(json) <= MAX_PLAIN_BYTES &&
  fields.every((field) => isScalar(document[field])) &&
  isPlain(document, MAX_LEVELS);

const indexedOnly = (document: Document, { fields }: Indexed): Document =>
  Object.fromEntries(
    fields
      .filter((field) => Object.hasOwn(document, field) && isScalar(document[field]))
      .map((field) => {
        const value = document[field];
        return [field, typeof value === 'string' ? storedText(value) : value];
      }),
  );

export const stored = (
  n: number,
  write: { readonly tenantId: string; readonly document: Document | undefined; readonly json: string },
  indexed: Indexed,
): Omit<Stored, '_id'> => {
  const { tenantId, document, json } = write;
  if (document === undefined) return { n };
  const t = storedTenant(tenantId);
  if (isStoredAsItIs(document, json, indexed)) return { n, t, doc: document };
  return { n, t, doc: indexedOnly(document, indexed), text: json };
};

/** Undefined: there is none, or it was removed. */
export const documentOf = (found: Pick<Stored, 'doc' | 'text'> | undefined): Document | undefined =>
  found?.text === undefined ? found?.doc : (JSON.parse(found.text) as Document);
