import { hash } from 'node:crypto';

/** 53 bits, as many as a number holds exactly. */
const digestOf = (text: string): number => {
  const digest = hash('sha1', text, 'buffer');
  return digest.readUInt32LE(0) * 2 ** 21 + (digest.readUInt32LE(4) >>> 11);
};

/** Finds the texts that were added more than once, in eight bytes each. */
export interface RepeatedTexts {
  add(text: string): void;
  /** The number of digests that occur more than once, and whether a text has one of them: it may still be unique. */
  find(): { readonly count: number; readonly mayHave: (text: string) => boolean };
}

export const repeatedTexts = (): RepeatedTexts => {
  let digests = new Float64Array(1_024);
  let length = 0;
  return {
    add: (text) => {
      if (length === digests.length) {
        const grown = new Float64Array(2 * length);
        grown.set(digests);
        digests = grown;
      }
      digests[length] = digestOf(text);
      length += 1;
    },
    find: () => {
      const sorted = digests.subarray(0, length).toSorted();
      const repeated = new Set(sorted.filter((digest, i) => i > 0 && digest === sorted[i - 1]));
      return { count: repeated.size, mayHave: (text) => repeated.has(digestOf(text)) };
    },
  };
};
