import { createHash } from 'node:crypto';
import {
  appended,
  consistencyRanges,
  EMPTY_ROOT,
  inclusionRanges,
  rootOf,
  rootsOf,
  rowOf,
  type Frontier,
  type Hash,
  type Node,
} from '../../src/evidence/tree';

export interface Rows {
  readonly completed: readonly (readonly Hash[])[];
  readonly roots: readonly Hash[];
}

export const rowsOf = (leaves: readonly Hash[]): Rows => {
  let frontier: Frontier = [];
  const completed: (readonly Hash[])[] = [];
  const roots = [rootOf(frontier)];
  for (const [size, leaf] of leaves.entries()) {
    const row = appended(frontier, size, leaf);
    frontier = row.frontier;
    completed.push(row.completed);
    roots.push(rootOf(frontier));
  }
  return { completed, roots };
};

/** Finds nodes where they are stored: in the row that completes each of them. */
const hashesIn =
  ({ completed }: Rows) =>
  async (nodes: readonly Node[]): Promise<readonly Hash[]> =>
    nodes.map((node) => {
      const hash = completed[rowOf(node) - 1]?.[node.level];
      if (hash === undefined) throw new Error(`No row has node ${node.index} of level ${node.level}.`);
      return hash;
    });

export const inclusionIn = (rows: Rows, index: number, size: number): Promise<readonly Hash[]> =>
  rootsOf(inclusionRanges(index, size), hashesIn(rows));

export const consistencyIn = (rows: Rows, older: number, size: number): Promise<readonly Hash[]> =>
  rootsOf(consistencyRanges(older, size), hashesIn(rows));

export const splitOf = (size: number): number => 2 ** Math.ceil(Math.log2(size) - 1);

/** RFC 6962, section 2.1, word for word and without any care for time. */
export const naiveRoot = (leaves: readonly Hash[]): Hash => {
  if (leaves.length <= 1) return leaves[0] ?? EMPTY_ROOT;
  const split = splitOf(leaves.length);
  const [left, right] = [naiveRoot(leaves.slice(0, split)), naiveRoot(leaves.slice(split))];
  return createHash('sha256').update(Buffer.of(1)).update(left).update(right).digest();
};
