import { looksLikeKey } from './key-like';

const TRACE_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** It is logged, stored and sent back: somebody's API key must not be. */
export const isTraceId = (text: string): boolean => TRACE_ID.test(text) && !looksLikeKey(text);
