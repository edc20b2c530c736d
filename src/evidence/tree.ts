import { hash } from 'node:crypto';

/**
 * The Merkle tree of RFC 6962, as pure functions. The leaves are rows, numbered from 0 here. A node (level, index) is the
 * root of the 2^level leaves from index · 2^level on; the row that completes it is known, and stores its hash.
 */

/** 32 bytes. */
export type Hash = Buffer;

const NODE = Buffer.of(1);

export const EMPTY_ROOT: Hash = hash('sha256', '', 'buffer');

export const leafHash = (statement: string): Hash => hash('sha256', `\0${statement}`, 'buffer');

const nodeHash = (left: Hash, right: Hash): Hash =>
  hash('sha256', Buffer.concat([NODE, left, right]), 'buffer');

/** The roots of the largest complete subtrees of a tree, from left to right: one for each 1 in the binary form of its size. */
export type Frontier = readonly Hash[];

/** A leaf added to a tree of this size, and the hashes that it completes: its own, then of each larger subtree that ends with it. */
export const appended = (frontier: Frontier, size: number, leaf: Hash) => {
  const roots = [...frontier];
  const completed = [leaf];
  let last = leaf;
  for (let left = size; left % 2 === 1; left = (left - 1) / 2) {
    last = nodeHash(roots.pop() as Hash, last);
    completed.push(last);
  }
  return { frontier: [...roots, last], completed };
};

/** The root of neighbouring subtrees, the larger ones first, such as those of a frontier. */
export const rootOf = (roots: readonly Hash[]): Hash =>
  roots.length === 0 ? EMPTY_ROOT : roots.reduceRight((right, left) => nodeHash(left, right));

/** The leaves from one up to another one, exclusive. */
type Range = readonly [from: number, to: number];

export interface Node {
  readonly level: number;
  readonly index: number;
}

/** The largest power of two below a size of two or more. */
const splitOf = (size: number): number => {
  let split = 1;
  while (split * 2 < size) split *= 2;
  return split;
};

/** The complete subtrees of a range of a proof, the larger ones first. */
const nodesOf = ([from, to]: Range): readonly Node[] => {
  const nodes: Node[] = [];
  for (let start = from; start < to;) {
    let level = 0;
    let width = 1;
    for (; start % (width * 2) === 0 && start + width * 2 <= to; width *= 2) level += 1;
    nodes.push({ level, index: start / width });
    start += width;
  }
  return nodes;
};

/** The number of the row, from 1, that stores a node, as the hash at `level` in its list. */
export const rowOf = ({ level, index }: Node): number => (index + 1) * 2 ** level;

/** The ranges whose roots prove that a leaf is in a tree of this size, from the leaf up. */
export const inclusionRanges = (index: number, size: number, start = 0): readonly Range[] => {
  if (size <= 1) return [];
  const split = splitOf(size);
  return index < split
    ? [...inclusionRanges(index, split, start), [start + split, start + size]]
    : [...inclusionRanges(index - split, size - split, start + split), [start, start + split]];
};

/** The ranges whose roots prove that a tree of this size begins with one of an older size. */
export const consistencyRanges = (older: number, size: number): readonly Range[] => {
  const subproof = (from: number, old: number, now: number, isWhole: boolean): readonly Range[] => {
    if (old === now) return isWhole ? [] : [[from, from + now]];
    const split = splitOf(now);
    return old <= split
      ? [...subproof(from, old, split, isWhole), [from + split, from + now]]
      : [...subproof(from + split, old - split, now - split, false), [from, from + split]];
  };
  return older === 0 ? [] : subproof(0, older, size, true);
};

/** The nodes of ranges together, asked for at once, and each range's root. */
export const rootsOf = async (
  ranges: readonly Range[],
  hashesOf: (nodes: readonly Node[]) => Promise<readonly Hash[]>,
): Promise<readonly Hash[]> => {
  const nodes = ranges.map(nodesOf);
  const hashes = [...(await hashesOf(nodes.flat()))];
  return nodes.map(({ length }) => rootOf(hashes.splice(0, length)));
};

/** The root above a node: of all siblings, and of those to its left alone. Undefined: there are too few or too many. */
const rootsAbove = (node: Hash, index: number, end: number, siblings: readonly Hash[]) => {
  let at = index;
  let last = end;
  let whole = node;
  let left = node;
  for (const sibling of siblings) {
    if (last === 0) return undefined;
    if (at % 2 === 1 || at === last) {
      whole = nodeHash(sibling, whole);
      left = nodeHash(sibling, left);
      for (; at % 2 === 0 && at > 0; at /= 2) last = Math.floor(last / 2);
    } else whole = nodeHash(whole, sibling);
    at = Math.floor(at / 2);
    last = Math.floor(last / 2);
  }
  return last === 0 ? { whole, left } : undefined;
};

/** The root of a tree of this size in which the leaf is at this index, if the proof is one. Undefined: it is none. */
export const rootByInclusion = (
  leaf: Hash,
  index: number,
  size: number,
  proof: readonly Hash[],
): Hash | undefined =>
  index < 0 || index >= size ? undefined : rootsAbove(leaf, index, size - 1, proof)?.whole;

/** Whether a proof shows that a tree of this size and root begins with an older one. */
export const isConsistent = (
  older: { readonly size: number; readonly root: Hash },
  newer: { readonly size: number; readonly root: Hash },
  proof: readonly Hash[],
): boolean => {
  if (older.size > newer.size) return false;
  if (older.size === newer.size) return proof.length === 0 && older.root.equals(newer.root);
  if (older.size === 0) return proof.length === 0 && older.root.equals(EMPTY_ROOT);
  let at = older.size - 1;
  let last = newer.size - 1;
  for (; at % 2 === 1; at = (at - 1) / 2) last = Math.floor(last / 2);
  const [first, ...others] = at === 0 ? [older.root, ...proof] : proof;
  if (first === undefined) return false;
  const roots = rootsAbove(first, at, last, others);
  return roots?.left.equals(older.root) === true && roots.whole.equals(newer.root);
};
