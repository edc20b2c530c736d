import { looksLikeKey } from './key-like';
import { invalidValue } from './refusal';

/** For Tenants, Applications and keys, in UTF-16 units. */
export const MAX_NAME_LENGTH = 200;

/** What is wrong with a name, or undefined. HTTP and the command line share this rule. */
export const nameFault = (name: string): string | undefined => {
  if (name.trim() === '') return 'must not be blank';
  if (name.length > MAX_NAME_LENGTH) return `must be at most ${MAX_NAME_LENGTH} characters long`;
  if (!name.isWellFormed()) return 'must be well-formed Unicode (it contains a lone surrogate)';
  if (looksLikeKey(name)) return 'must not contain an API key';
  return undefined;
};

export const mustBeName = (name: string): void => {
  const fault = nameFault(name);
  if (fault !== undefined) throw invalidValue('name', `The name ${fault}.`);
};

const TRACE_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** Trace ids are logged, stored and sent back, so one must not be an API key. */
export const isTraceId = (text: string): boolean => TRACE_ID.test(text) && !looksLikeKey(text);
