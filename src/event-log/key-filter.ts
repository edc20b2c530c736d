interface Key {
  readonly tenantId: string;
  readonly collection: string;
  readonly key: string;
}

/** A Bloom filter of keys: no false negatives, few false positives. */
export interface KeyFilter {
  mayHave(key: Key): boolean;
  /** True: the key was definitely not there before. */
  add(key: Key): boolean;
}

/** 16 MB: one false positive in half a million at two million keys. False positives cost time, nothing else. */
const WORDS = 1 << 22;

/** All bits of a key lie in one block, which is one CPU cache line, so a lookup misses the cache at most once. */
const BLOCK_WORDS = 16;
const BLOCK_BITS = 9;
/** Per hash, of BLOCK_BITS bits each. */
const PROBES = 3;

/** Two running hashes of a text: FNV-1a and a multiplicative one. */
interface Hashes {
  readonly one: number;
  readonly other: number;
}

const extendHashes = ({ one, other }: Hashes, text: string): Hashes => {
  let [a, b] = [one, other];
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    a = Math.imul(a ^ code, 16_777_619);
    b = (Math.imul(b, 31) + code) | 0;
  }
  return { one: a, other: b };
};

const EMPTY: Hashes = { one: 0x811c9dc5 | 0, other: 0 };

/** The finalizer of MurmurHash3: every input bit affects every output bit. */
const finalize = (number: number): number => {
  const half = Math.imul(number ^ (number >>> 16), 0x85ebca6b);
  const whole = Math.imul(half ^ (half >>> 13), 0xc2b2ae35);
  return whole ^ (whole >>> 16);
};

/** Keeps the hash of the last tenant, because many keys in a row belong to the same one. */
const hasher = () => {
  let prefix = EMPTY;
  let lastTenant = '';
  return ({ tenantId, collection, key }: Key): Hashes => {
    if (tenantId !== lastTenant) [prefix, lastTenant] = [extendHashes(EMPTY, tenantId), tenantId];
    const { one, other } = extendHashes(extendHashes(prefix, collection), key);
    return { one: finalize(one), other: finalize(other ^ Math.imul(one, 0x9e3779b1)) };
  };
};

/** `words` must be a power of two. */
export const keyFilter = (words = WORDS): KeyFilter => {
  const bits = new Int32Array(words);
  const hashesOf = hasher();

  /** Whether all bits of the key were set already. */
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
