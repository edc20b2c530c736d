import * as fc from 'fast-check';

const SURROGATES = { first: 0xd800, count: 0x800 };
const LAST = 0x10ffff;

/**
 * Any character except lone surrogates. fast-check's own unit 'binary' first spends a second on a table of all of them.
 */
export const anyCharacter = fc
  .nat({ max: LAST - SURROGATES.count })
  .map((n) => String.fromCodePoint(n < SURROGATES.first ? n : n + SURROGATES.count));
