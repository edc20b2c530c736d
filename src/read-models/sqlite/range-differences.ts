import { isDeepStrictEqual } from 'node:util';
import { pathToFileURL } from 'node:url';
import type { Document } from '../../../projections/projector';
import type { Database } from '../../sqlite/database';
import type { Compared, Suspect } from '../read-models';
import type { GenerationReader } from './generation-reader';
import { textOf } from './stored-text';
import { OTHER, placeOf, rangeIn, type Place, type Range, type RangeRow } from './tables';

/** What one connection sees; it may be another connection at every step. */
export interface Connection {
  readonly db: Database;
  readonly reader: GenerationReader;
}

const PAGE = 500;
const LONG_RANGE = 5_000;
/** As a limit. */
const ALL = -1;

const nameOf = ({ tenant, key }: RangeRow): string => `${tenant} ${key}`;
const documentOf = ({ document }: RangeRow): Document => JSON.parse(document) as Document;

/** Asks with the other file attached: between two steps it is not open. */
const beside = <T>({ db }: Connection, otherPath: string, ask: () => T): T => {
  db.exec(`ATTACH '${pathToFileURL(otherPath).href.replaceAll("'", '%27')}?mode=ro' AS ${OTHER}`);
  try {
    return ask();
  } finally {
    db.exec(`DETACH ${OTHER}`);
  }
};

/**
 * The differences of a collection in two files. Rows are compared in the order in which they are stored: builds from the
 * same log store them in the same order, so a range that is the same byte for byte need not leave SQLite. What is not is
 * compared document by document; a row that is stored elsewhere in the other file becomes a suspect.
 */
export async function* rangeDifferences(
  connect: () => Connection,
  otherPath: string,
  collectionName: string,
): AsyncGenerator<Compared> {
  const collection = connect().reader.collectionOf(collectionName);

  /** The first rows after a place. Where there are no more than that, it is open at the end. */
  const cut = (after: Place | undefined, limit: number): Range => {
    const { row, values } = rangeIn(collection, { after, upTo: undefined });
    const last = connect()
      .reader.prepared(row)
      .get(...values, limit - 1) as RangeRow | undefined;
    return { after, upTo: last === undefined ? undefined : placeOf(collection, last) };
  };

  /** How many rows both have in common, if they have no others. */
  const sameRows = (range: Range): number | undefined => {
    const { compared, others, values } = rangeIn(collection, range);
    const connection = connect();
    const { prepared } = connection.reader;
    return beside(connection, otherPath, () => {
      const { n, same } = prepared(compared).get(...values) as { n: number; same: number };
      const there = prepared(others).get(...values) as { n: number };
      return same === n && there.n === n ? n : undefined;
    });
  };

  const rowsOf = (file: 'main' | typeof OTHER, range: Range): readonly RangeRow[] => {
    const { rows, values } = rangeIn(collection, range);
    const connection = connect();
    const read = (limit: number) =>
      connection.reader.prepared(rows(file)).all(...values, limit) as unknown as RangeRow[];
    return file === 'main' ? read(ALL) : beside(connection, otherPath, () => read(PAGE));
  };

  const suspectsOf = (rows: Iterable<RangeRow>, seenIn: Suspect['seenIn']): readonly Suspect[] =>
    Array.from(rows, ({ tenant, key }) => ({
      tenantId: tenant,
      collection: collectionName,
      key: textOf(key),
      seenIn,
    }));

  async function* compareDocuments(range: Range): AsyncGenerator<Compared> {
    const own = rowsOf('main', range);
    const left = new Map(own.map((row) => [nameOf(row), row]));
    for (let { after } = range; ;) {
      const page = rowsOf(OTHER, { after, upTo: range.upTo });
      const elsewhere = page.filter((row) => !left.has(nameOf(row)));
      for (const row of page) {
        const mine = left.get(nameOf(row));
        if (mine !== undefined && isDeepStrictEqual(documentOf(mine), documentOf(row)))
          left.delete(nameOf(row));
      }
      yield { documents: 0, suspects: suspectsOf(elsewhere, 'rebuilt') };
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) break;
      after = placeOf(collection, last);
    }
    yield { documents: own.length, suspects: suspectsOf(left.values(), 'live') };
  }

  let after: Place | undefined;
  let limit = PAGE;
  do {
    const range = cut(after, limit);
    const documents = sameRows(range);
    if (documents === undefined) {
      const short = cut(after, PAGE);
      yield* compareDocuments(short);
      [after, limit] = [short.upTo, PAGE];
    } else {
      yield { documents, suspects: [] };
      // Where nothing differs the next range may be long.
      [after, limit] = [range.upTo, LONG_RANGE];
    }
  } while (after !== undefined);
}
