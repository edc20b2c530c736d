import * as merkle from '../src/evidence/tree';
import { findFrontier, findLog, hashesIn, ROWS } from './logs';
import type { Reader } from './projector';

type RowReader = Pick<Reader, 'get' | 'at'>;

/** The tree of all rows of a tenant's log that are shown. It only grows: a proof for a size stays right. */
export const treeOf = async (reader: Pick<Reader, 'get'>, tenantId: string) => {
  const { size, frontier } = await findFrontier(reader, tenantId);
  return { size, root: merkle.rootOf(frontier) };
};

/** The hashes of nodes, which stand in as many rows. */
const hashesOf =
  (reader: Pick<Reader, 'at'>, tenantId: string) =>
  async (nodes: readonly merkle.Node[]): Promise<readonly merkle.Hash[]> => {
    const line = { index: 'by_number', equal: [] };
    const rows = await reader.at(tenantId, ROWS, line, nodes.map(merkle.rowOf));
    return nodes.map(({ level }, i) => hashesIn(String(rows[i]?.['evidence']))[level] as merkle.Hash);
  };

/** The index is from 0. Undefined: the event has no row. */
export const inclusionProof = async (reader: RowReader, tenantId: string, eventId: string) => {
  const row = await findLog(reader, tenantId, eventId);
  if (row === undefined) return undefined;
  const index = row.number - 1;
  // It is read after the row, so the row is in it.
  const tree = await treeOf(reader, tenantId);
  const hashes = await merkle.rootsOf(merkle.inclusionRanges(index, tree.size), hashesOf(reader, tenantId));
  return { ...tree, hashes, index };
};

/** That the tree begins with the one of an older size. No hashes: it has not so many rows. */
export const consistencyProof = async (reader: RowReader, tenantId: string, older: number) => {
  const tree = await treeOf(reader, tenantId);
  if (older > tree.size) return { tree, hashes: undefined };
  const hashes = await merkle.rootsOf(merkle.consistencyRanges(older, tree.size), hashesOf(reader, tenantId));
  return { tree, hashes };
};
