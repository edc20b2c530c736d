/**
 * Remembers texts in little memory: it never overlooks one that comes again, and very seldom takes a new one for one of
 * those. Asks and adds in one.
 */
export type Seen = (text: string) => boolean;

/** Eight bytes for each text that is expected: about one in thirty million is mistaken. 256 MB at most. */
const WORDS_EACH = 2;
const FEWEST_WORDS = 2 ** 16;
const MOST_WORDS = 2 ** 26;
const PROBES = 8;

/** Spreads what all bits of a number say over all bits (the end of MurmurHash3). */
const spread = (number: number): number => {
  const half = Math.imul(number ^ (number >>> 16), 0x85ebca6b);
  const whole = Math.imul(half ^ (half >>> 13), 0xc2b2ae35);
  return whole ^ (whole >>> 16);
};

export const idFilter = (expected: number): Seen => {
  const wanted = Math.min(MOST_WORDS, Math.max(FEWEST_WORDS, expected * WORDS_EACH));
  const bits = new Int32Array(2 ** Math.ceil(Math.log2(wanted)));
  const lastBit = bits.length * 32 - 1;
  return (text) => {
    let [one, other] = [0x811c9dc5, 0];
    for (let i = 0; i < text.length; i += 1) {
      const code = text.charCodeAt(i);
      one = Math.imul(one ^ code, 16_777_619);
      other = (Math.imul(other, 31) + code) | 0;
    }
    const first = spread(one);
    const step = spread(other ^ Math.imul(one, 0x9e3779b1)) | 1;
    let isSeen = true;
    for (let i = 0; i < PROBES; i += 1) {
      const bit = (first + Math.imul(i, step)) & lastBit;
      const word = bits[bit >>> 5] as number;
      const mask = 1 << (bit & 31);
      if ((word & mask) !== 0) continue;
      isSeen = false;
      bits[bit >>> 5] = word | mask;
    }
    return isSeen;
  };
};
