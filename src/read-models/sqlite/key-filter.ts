import type { DocumentKey } from '../read-models';

/** Remembers keys in little memory: it never denies one that was added, and seldom claims one that was not. */
export interface KeyFilter {
  /** A key as the filter knows it: worked out once for whoever asks for it and then adds it. */
  hash(key: DocumentKey): KeyHash;
  add(hash: KeyHash): void;
  mayHave(hash: KeyHash): boolean;
}

export interface KeyHash {
  readonly one: number;
  readonly other: number;
}

/** 16 MB: at two million keys it is wrong about one in half a million; with more it is wrong more often, which only costs. */
const WORDS = 1 << 22;

/** All bits of a key lie in one block, a line of the processor's cache: it is fetched once. */
const BLOCK_WORDS = 16;
const BLOCK_BITS = 9;
/** From each hash; nine bits each. */
const PROBES = 3;

/** Two hashes of a text on top of what was hashed before (FNV-1a and a multiplicative one). */
const hashOn = ({ one, other }: KeyHash, text: string): KeyHash => {
  let [a, b] = [one, other];
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    a = Math.imul(a ^ code, 16_777_619);
    b = (Math.imul(b, 31) + code) | 0;
  }
  return { one: a, other: b };
};

const NOTHING: KeyHash = { one: 0x811c9dc5 | 0, other: 0 };

/** Spreads what all bits of a number say over all bits (the end of MurmurHash3). */
const spread = (number: number): number => {
  const half = Math.imul(number ^ (number >>> 16), 0x85ebca6b);
  const whole = Math.imul(half ^ (half >>> 13), 0xc2b2ae35);
  return whole ^ (whole >>> 16);
};

/** A power of two words. */
export const keyFilter = (words = WORDS): KeyFilter => {
  const bits = new Int32Array(words);

  /** Many keys in a row share their tenant and collection. */
  let begun = NOTHING;
  let [lastTenant, lastCollection] = ['', ''];

  const hash = ({ tenantId, collection, key }: DocumentKey): KeyHash => {
    if (tenantId !== lastTenant || collection !== lastCollection) {
      begun = hashOn(hashOn(NOTHING, tenantId), collection);
      [lastTenant, lastCollection] = [tenantId, collection];
    }
    const { one, other } = hashOn(begun, key);
    return { one: spread(one), other: spread(other ^ Math.imul(one, 0x9e3779b1)) };
  };

  /** The first word of the block of a key. */
  const blockOf = ({ one, other }: KeyHash): number =>
    (Math.imul(one ^ other, 0x9e3779b1) >>> 6) & (words - BLOCK_WORDS);

  /** The i-th nine bits of a hash: a bit of the block. */
  const bitOf = (from: number, i: number): number => (from >>> (i * BLOCK_BITS)) & (BLOCK_WORDS * 32 - 1);

  const isSet = (block: number, bit: number): boolean =>
    ((bits[block + (bit >>> 5)] as number) & (1 << (bit & 31))) !== 0;

  const set = (block: number, bit: number): void => {
    const word = block + (bit >>> 5);
    bits[word] = (bits[word] as number) | (1 << (bit & 31));
  };

  return {
    hash,
    add: (key) => {
      const block = blockOf(key);
      for (let i = 0; i < PROBES; i += 1) {
        set(block, bitOf(key.one, i));
        set(block, bitOf(key.other, i));
      }
    },
    mayHave: (key) => {
      const block = blockOf(key);
      for (let i = 0; i < PROBES; i += 1)
        if (!isSet(block, bitOf(key.one, i)) || !isSet(block, bitOf(key.other, i))) return false;
      return true;
    },
  };
};
