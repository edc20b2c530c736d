import { looksLikeKey } from './key-like';

const TRACE_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** Trace ids are logged, stored and sent back, so one must not be an API key. */
export const isTraceId = (text: string): boolean => TRACE_ID.test(text) && !looksLikeKey(text);
