import { invalid } from './validation';

export const etagOf = (tag: string): string => `"${tag}"`;

/** Of the same body, compressed: two representations must not share a strong tag. Conditions accept either. */
export const compressedTag = (etag: string): string => etag.replace(/"$/, '-gzip"');

const withoutEncoding = (etag: string): string => etag.replace(/-gzip"$/, '"');

const TAG = /^(W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/;

/** The entity tags in a list header; undefined: it is malformed. Our own tags contain no comma. */
const tagsOf = (header: string): readonly string[] | undefined => {
  const tags = header
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');
  return tags.length > 0 && tags.every((tag) => TAG.test(tag)) ? tags : undefined;
};

/** The first part of a tag. */
const revisionIn = (etag: string): string | undefined => /^"([0-9]+)(?:\.[0-9a-f]+)?"$/.exec(etag)?.[1];

/** `If-Match` compares strongly: a weak tag never matches. */
export const ifMatch = (header: string | undefined): ((tag: string) => boolean) | undefined => {
  if (header === undefined) return undefined;
  if (header.trim() === '*') return () => true;
  const tags = tagsOf(header);
  if (tags === undefined)
    throw invalid({ 'If-Match': ['must be "*" or a list of quoted entity tags, for example "3"'] });
  const revisions = new Set(tags.map((tag) => revisionIn(withoutEncoding(tag))));
  return (tag) => revisions.has(revisionIn(etagOf(tag)));
};

/**
 * The entity tag in `If-None-Match`, which compares weakly, that the resource still has. Undefined: it has changed. A
 * malformed header is ignored, so the full response is sent.
 */
export const unchangedTag = (header: string | undefined, tag: string): string | undefined => {
  if (header === undefined) return undefined;
  if (header.trim() === '*') return etagOf(tag);
  const tags = (tagsOf(header) ?? []).map((sent) => sent.replace(/^W\//, ''));
  return tags.find((sent) => withoutEncoding(sent) === etagOf(tag));
};
