import { invalid } from './validation';

export const etagOf = (revision: number): string => `"${revision}"`;

const TAG = /^(W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/;

/** The entity tags in a list header; undefined: it is malformed. Our own tags contain no comma. */
const tagsOf = (header: string): readonly string[] | undefined => {
  const tags = header
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');
  return tags.length > 0 && tags.every((tag) => TAG.test(tag)) ? tags : undefined;
};

/** `If-Match` compares strongly: a weak tag never matches. */
export const ifMatch = (header: string | undefined): ((revision: number) => boolean) | undefined => {
  if (header === undefined) return undefined;
  if (header.trim() === '*') return () => true;
  const tags = tagsOf(header);
  if (tags === undefined)
    throw invalid({ 'If-Match': ['must be "*" or a list of quoted entity tags, for example "3"'] });
  return (revision) => tags.includes(etagOf(revision));
};

/** `If-None-Match` compares weakly. A malformed header is ignored, so the full response is sent. */
export const isUnchanged = (header: string | undefined, revision: number): boolean => {
  if (header === undefined) return false;
  if (header.trim() === '*') return true;
  return (tagsOf(header) ?? []).some((tag) => tag.replace(/^W\//, '') === etagOf(revision));
};
