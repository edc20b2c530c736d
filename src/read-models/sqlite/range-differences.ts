import { isDeepStrictEqual } from 'node:util';
import type { Collection, Document } from '../../../projections/projector';
import { attach } from '../../sqlite/database';
import type { Compared, Suspect } from '../read-models';
import type { GenerationReader } from './generation-reader';
import { textOf } from '../stored-text';
import { OTHER, placeOf, rangeIn, type Place, type Range, type RangeRow } from './tables';

const PAGE = 500;
const LONG_RANGE = 5_000;
/** No limit, in SQL. */
const ALL = -1;

type Read = <T>(ask: (reader: GenerationReader) => T) => T;

/** One collection in the files of two generations. */
interface Pair {
  /** Reads the live file. */
  readonly read: Read;
  /** The path of the rebuilt file. */
  readonly otherPath: string;
  readonly collection: Collection;
}

const nameOf = ({ tenant, key }: RangeRow): string => `${tenant} ${key}`;
const documentOf = ({ document }: RangeRow): Document => JSON.parse(document) as Document;

/** Attaches the other file for one query only, so that it is not kept open between steps. */
const withOtherFile = <T>({ read, otherPath }: Pair, ask: (reader: GenerationReader) => T): T =>
  read((reader) => {
    attach(reader.db, otherPath, OTHER, 'mode=ro');
    try {
      return ask(reader);
    } finally {
      reader.db.exec(`DETACH ${OTHER}`);
    }
  });

/** The range of the next `limit` rows after a place. Open-ended if there are fewer. */
const nextRange = ({ read, collection }: Pair, after: Place | undefined, limit: number): Range => {
  const { row, values } = rangeIn(collection, { after, upTo: undefined });
  const last = read(({ prepared }) => prepared(row).get(...values, limit - 1)) as RangeRow | undefined;
  return { after, upTo: last === undefined ? undefined : placeOf(collection, last) };
};

/** The number of rows if both files have exactly the same, else undefined. */
const sameRows = (pair: Pair, range: Range): number | undefined => {
  const { compared, others, values } = rangeIn(pair.collection, range);
  return withOtherFile(pair, ({ prepared }) => {
    const { n, same } = prepared(compared).get(...values) as { n: number; same: number };
    const there = prepared(others).get(...values) as { n: number };
    return same === n && there.n === n ? n : undefined;
  });
};

/** All rows of a range in the live file, or the first page of them in the other one. */
const rowsOf = (pair: Pair, file: 'main' | typeof OTHER, range: Range): readonly RangeRow[] => {
  const { rows, values } = rangeIn(pair.collection, range);
  const first =
    (limit: number) =>
    ({ prepared }: GenerationReader) =>
      prepared(rows(file)).all(...values, limit) as unknown as RangeRow[];
  return file === 'main' ? pair.read(first(ALL)) : withOtherFile(pair, first(PAGE));
};

const suspectsOf = (
  { collection }: Pair,
  rows: Iterable<RangeRow>,
  seenIn: Suspect['seenIn'],
): readonly Suspect[] =>
  Array.from(rows, ({ tenant, key }) => ({
    tenantId: tenant,
    collection: collection.name,
    key: textOf(key),
    seenIn,
  }));

/** Documents stored at another place in the other file become suspects too. */
async function* compareDocuments(pair: Pair, range: Range): AsyncGenerator<Compared> {
  const own = rowsOf(pair, 'main', range);
  const left = new Map(own.map((row) => [nameOf(row), row]));
  for (let { after } = range; ;) {
    const page = rowsOf(pair, OTHER, { after, upTo: range.upTo });
    const elsewhere = page.filter((row) => !left.has(nameOf(row)));
    for (const row of page) {
      const liveRow = left.get(nameOf(row));
      if (liveRow !== undefined && isDeepStrictEqual(documentOf(liveRow), documentOf(row)))
        left.delete(nameOf(row));
    }
    yield { documents: 0, suspects: suspectsOf(pair, elsewhere, 'rebuilt') };
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) break;
    after = placeOf(pair.collection, last);
  }
  yield { documents: own.length, suspects: suspectsOf(pair, left.values(), 'live') };
}

/**
 * The differences of a collection in two files. Compares rows in stored order: builds from the same log store them in
 * the same order, so ranges that are equal byte for byte are compared inside SQLite. All others are compared document
 * by document.
 */
export async function* rangeDifferences(
  read: Read,
  otherPath: string,
  collection: string,
): AsyncGenerator<Compared> {
  const pair: Pair = { read, otherPath, collection: read(({ collectionOf }) => collectionOf(collection)) };
  let after: Place | undefined;
  let limit = PAGE;
  do {
    const range = nextRange(pair, after, limit);
    const documents = sameRows(pair, range);
    if (documents === undefined) {
      const short = nextRange(pair, after, PAGE);
      yield* compareDocuments(pair, short);
      [after, limit] = [short.upTo, PAGE];
    } else {
      yield { documents, suspects: [] };
      // After a range without differences, the next one may be long.
      [after, limit] = [range.upTo, LONG_RANGE];
    }
  } while (after !== undefined);
}
