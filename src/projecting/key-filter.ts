import type { DocumentKey } from '../read-models/read-models';

/** Remembers keys in little memory: it never denies one that was added, and seldom claims one that was not. */
export interface KeyFilter {
  add(key: DocumentKey): void;
  mayHave(key: DocumentKey): boolean;
}

/** 4 MB: at two million keys it is wrong about one in four hundred; with more it is wrong more often, which only costs. */
const WORDS = 1 << 20;
const PROBES = 4;

/** Two hashes of a text in one go (FNV-1a and a multiplicative one). */
const hashInto = (hashes: Uint32Array, text: string): void => {
  let a = hashes[0] as number;
  let b = hashes[1] as number;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    a = Math.imul(a ^ code, 16_777_619);
    b = Math.imul(b, 31) + code;
  }
  hashes[0] = a;
  hashes[1] = b;
};

export const keyFilter = (words = WORDS): KeyFilter => {
  const bits = new Uint32Array(words);
  const hashes = new Uint32Array(2);

  /** Calls back with each bit of a key until it gets false. */
  const probe = ({ tenantId, collection, key }: DocumentKey, at: (word: number, bit: number) => boolean) => {
    hashes[0] = 2_166_136_261;
    hashes[1] = 0;
    hashInto(hashes, tenantId);
    hashInto(hashes, collection);
    hashInto(hashes, key);
    const first = hashes[0];
    const step = hashes[1] | 1;
    for (let i = 0; i < PROBES; i += 1) {
      const bit = Math.imul(first + i * step, 2_654_435_761) >>> 0;
      if (!at((bit >>> 5) % words, 1 << (bit & 31))) return false;
    }
    return true;
  };

  return {
    add: (key) =>
      void probe(key, (word, bit) => {
        bits[word] = (bits[word] as number) | bit;
        return true;
      }),
    mayHave: (key) => probe(key, (word, bit) => ((bits[word] as number) & bit) !== 0),
  };
};
