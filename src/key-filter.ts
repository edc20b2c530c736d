/** What is remembered: it belongs to a tenant and to a collection. */
interface Key {
  readonly tenantId: string;
  readonly collection: string;
  readonly key: string;
}

/** Remembers keys in little memory (a Bloom filter): it never denies one that was added, and seldom claims another. */
export interface KeyFilter {
  mayHave(key: Key): boolean;
  /** True: the key was certainly not there before. */
  add(key: Key): boolean;
}

/** 16 MB: at two million keys it is wrong about one in half a million; with more it is wrong more often, which only costs. */
const WORDS = 1 << 22;

/** All bits of a key are in one block, a line of the processor's cache: it is fetched once. */
const BLOCK_WORDS = 16;
const BLOCK_BITS = 9;
/** From each hash; nine bits each. */
const PROBES = 3;

/** Two hashes of a text on top of what was hashed before (FNV-1a and a multiplicative one). */
interface Hashes {
  readonly one: number;
  readonly other: number;
}

const hashOn = ({ one, other }: Hashes, text: string): Hashes => {
  let [a, b] = [one, other];
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    a = Math.imul(a ^ code, 16_777_619);
    b = (Math.imul(b, 31) + code) | 0;
  }
  return { one: a, other: b };
};

const NOTHING: Hashes = { one: 0x811c9dc5 | 0, other: 0 };

/** Spreads what all bits of a number say over all bits (the end of MurmurHash3). */
const spread = (number: number): number => {
  const half = Math.imul(number ^ (number >>> 16), 0x85ebca6b);
  const whole = Math.imul(half ^ (half >>> 13), 0xc2b2ae35);
  return whole ^ (whole >>> 16);
};

/** Many keys in a row belong to the same tenant. */
const hasher = () => {
  let ofTenant = NOTHING;
  let lastTenant = '';
  return ({ tenantId, collection, key }: Key): Hashes => {
    if (tenantId !== lastTenant) [ofTenant, lastTenant] = [hashOn(NOTHING, tenantId), tenantId];
    const { one, other } = hashOn(hashOn(ofTenant, collection), key);
    return { one: spread(one), other: spread(other ^ Math.imul(one, 0x9e3779b1)) };
  };
};

/** A power of two words. */
export const keyFilter = (words = WORDS): KeyFilter => {
  const bits = new Int32Array(words);
  const hashesOf = hasher();

  /** Are all bits of a key set already? */
  const visit = (key: Key, sets: boolean): boolean => {
    const { one, other } = hashesOf(key);
    const block = (Math.imul(one ^ other, 0x9e3779b1) >>> 6) & (words - BLOCK_WORDS);
    let areSet = true;
    for (let i = 0; i < 2 * PROBES; i += 1) {
      const bit = ((i < PROBES ? one : other) >>> ((i % PROBES) * BLOCK_BITS)) & (BLOCK_WORDS * 32 - 1);
      const word = block + (bit >>> 5);
      const mask = 1 << (bit & 31);
      areSet &&= ((bits[word] as number) & mask) !== 0;
      if (sets) bits[word] = (bits[word] as number) | mask;
      else if (!areSet) return false;
    }
    return areSet;
  };

  return { mayHave: (key) => visit(key, false), add: (key) => !visit(key, true) };
};
