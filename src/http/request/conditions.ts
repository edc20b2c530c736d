import { invalid } from './validation';

export const etagOf = (tag: string): string => `"${tag}"`;

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
  const revisions = new Set(tags.map(revisionIn));
  return (tag) => revisions.has(revisionIn(etagOf(tag)));
};

/** `If-None-Match` compares weakly. A malformed header is ignored, so the full response is sent. */
export const isUnchanged = (header: string | undefined, tag: string): boolean => {
  if (header === undefined) return false;
  if (header.trim() === '*') return true;
  return (tagsOf(header) ?? []).some((sent) => sent.replace(/^W\//, '') === etagOf(tag));
};
