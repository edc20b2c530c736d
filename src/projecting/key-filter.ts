import type { DocumentKey } from '../read-models/read-models';

/** Remembers keys in little memory: it never denies one that was added, and seldom claims one that was not. */
export interface KeyFilter {
  add(key: DocumentKey): void;
  mayHave(key: DocumentKey): boolean;
}

/** 16 MB: at two million keys it is wrong about one in two million; with more it is wrong more often, which only costs. */
const WORDS = 1 << 22;
const PROBES = 6;

/** Two hashes of a text in one go (FNV-1a and a multiplicative one), as the two halves of what is kept. */
const hashInto = (hashes: Int32Array, text: string): void => {
  let a = hashes[0] as number;
  let b = hashes[1] as number;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    a = Math.imul(a ^ code, 16_777_619);
    b = (Math.imul(b, 31) + code) | 0;
  }
  hashes[0] = a;
  hashes[1] = b;
};

/** A power of two words. */
export const keyFilter = (words = WORDS): KeyFilter => {
  const bits = new Int32Array(words);
  const hashes = new Int32Array(2);

  /** The hashes of the last tenant and collection: many keys in a row share them. */
  const begun = new Int32Array(2);
  let [lastTenant, lastCollection] = ['', ''];

  const hash = ({ tenantId, collection, key }: DocumentKey): void => {
    if (tenantId !== lastTenant || collection !== lastCollection) {
      begun.set([0x811c9dc5 | 0, 0]);
      hashInto(begun, tenantId);
      hashInto(begun, collection);
      [lastTenant, lastCollection] = [tenantId, collection];
    }
    hashes.set(begun);
    hashInto(hashes, key);
  };

  /** The number of the bit that the i-th probe of the hashed key looks at. */
  const bitAt = (i: number): number =>
    Math.imul((hashes[0] as number) + Math.imul(i, (hashes[1] as number) | 1), 0x9e3779b1) >>> 0;

  return {
    add: (key) => {
      hash(key);
      for (let i = 0; i < PROBES; i += 1) {
        const bit = bitAt(i);
        const word = (bit >>> 5) & (words - 1);
        bits[word] = (bits[word] as number) | (1 << (bit & 31));
      }
    },
    mayHave: (key) => {
      hash(key);
      for (let i = 0; i < PROBES; i += 1) {
        const bit = bitAt(i);
        if (((bits[(bit >>> 5) & (words - 1)] as number) & (1 << (bit & 31))) === 0) return false;
      }
      return true;
    },
  };
};
