import type { Key } from './values';

/** Entries in the order of their keys, in blocks, so that an insertion moves little. */
export interface SortedList<T> {
  put(key: Key, value: T): void;
  remove(key: Key): void;
  /** The values with keys from `from` up to but excluding `to`, in order. */
  between(from: Key, to: Key): IterableIterator<T>;
  backwards(from: Key, to: Key): IterableIterator<T>;
}

const BLOCK = 512;

interface Block<T> {
  readonly keys: Key[];
  readonly values: T[];
}

/** How many of the sorted items come before the key. */
const countBefore = (length: number, keyAt: (at: number) => Key, key: Key): number => {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (keyAt(middle) < key) low = middle + 1;
    else high = middle;
  }
  return low;
};

export const sortedList = <T>(): SortedList<T> => {
  const blocks: Block<T>[] = [];

  /** The block that contains a key, or would. */
  const blockOf = (key: Key): number => {
    const at = countBefore(blocks.length, (index) => blocks[index]!.keys[0]!, key);
    return at < blocks.length && blocks[at]!.keys[0] === key ? at : Math.max(0, at - 1);
  };
  const within = (block: Block<T>, key: Key): number =>
    countBefore(block.keys.length, (at) => block.keys[at]!, key);

  return {
    put: (key, value) => {
      if (blocks.length === 0) blocks.push({ keys: [], values: [] });
      const number = blockOf(key);
      const block = blocks[number]!;
      const at = within(block, key);
      const isThere = block.keys[at] === key;
      block.keys.splice(at, isThere ? 1 : 0, key);
      block.values.splice(at, isThere ? 1 : 0, value);
      if (block.keys.length <= BLOCK) return;
      // Keys that only grow leave full blocks behind.
      const cut = at === block.keys.length - 1 ? BLOCK : BLOCK >>> 1;
      blocks.splice(number + 1, 0, { keys: block.keys.splice(cut), values: block.values.splice(cut) });
    },
    remove: (key) => {
      const number = blockOf(key);
      const block = blocks[number];
      const at = block === undefined ? 0 : within(block, key);
      if (block?.keys[at] !== key) return;
      block.keys.splice(at, 1);
      block.values.splice(at, 1);
      if (block.keys.length === 0) blocks.splice(number, 1);
    },
    *between(from, to) {
      for (let number = blockOf(from), first = true; number < blocks.length; number++, first = false) {
        const { keys, values } = blocks[number]!;
        for (let at = first ? within(blocks[number]!, from) : 0; at < keys.length; at++) {
          if (keys[at]! >= to) return;
          yield values[at]!;
        }
      }
    },
    *backwards(from, to) {
      for (let number = blockOf(to), first = true; number >= 0; number--, first = false) {
        const block = blocks[number];
        if (block === undefined) return;
        for (let at = (first ? within(block, to) : block.keys.length) - 1; at >= 0; at--) {
          if (block.keys[at]! < from) return;
          yield block.values[at]!;
        }
      }
    },
  };
};
