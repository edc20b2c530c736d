import { BSON, type Document } from 'mongodb';
import { MAX_DOCUMENT_BYTES, type Collection, type Stored } from './collection';
import { failure } from './failure';
import { filterOf } from './filter';
import { candidatesOf, explained, planOf, sorted, sortOf, type Plan } from './plan';
import type { View } from './store';
import { isDocument, keyOf, valuesAt } from './values';

/** Queries: find, count, aggregate, explain, and the cursors over their results. */
export interface Cursors {
  /** The first batch of a result, with a cursor for the rest. */
  open(namespace: string, documents: readonly Document[], batchSize: number, isSingle?: boolean): Document;
  next(id: unknown, batchSize: number): Document;
  kill(ids: readonly unknown[]): Document;
  /** The server loses all cursors, as after a restart. */
  killAll(): void;
  readonly size: number;
}

export const numberOf = (value: unknown, otherwise = 0): number =>
  value === undefined || value === null ? otherwise : Number(value);

const FIRST_BATCH = 101;

const batchOf = (documents: readonly Document[], max: number): readonly Document[] => {
  const batch: Document[] = [];
  let bytes = 0;
  for (const document of documents) {
    bytes += BSON.calculateObjectSize(document);
    if (batch.length >= max || (batch.length > 0 && bytes > MAX_DOCUMENT_BYTES)) break;
    batch.push(document);
  }
  return batch;
};

export const openCursors = (): Cursors => {
  const rests = new Map<string, { readonly ns: string; documents: readonly Document[] }>();
  let last = 0n;
  const part = (name: string, id: string, ns: string, batch: readonly Document[]): Document => ({
    cursor: { [name]: batch, id: BSON.Long.fromString(id), ns },
    ok: 1,
  });
  return {
    open: (ns, documents, batchSize, isSingle = false) => {
      const batch = batchOf(documents, batchSize < 0 ? FIRST_BATCH : batchSize);
      if (isSingle || batch.length === documents.length) return part('firstBatch', '0', ns, batch);
      const id = String((last += 1n));
      rests.set(id, { ns, documents: documents.slice(batch.length) });
      return part('firstBatch', id, ns, batch);
    },
    next: (id, batchSize) => {
      const rest = rests.get(String(id));
      if (rest === undefined) throw failure(43, `cursor id ${String(id)} not found`);
      const batch = batchOf(rest.documents, batchSize === 0 ? Infinity : batchSize);
      rest.documents = rest.documents.slice(batch.length);
      const isOver = rest.documents.length === 0;
      if (isOver) rests.delete(String(id));
      return part('nextBatch', isOver ? '0' : String(id), rest.ns, batch);
    },
    kill: (ids) => {
      const [killed, missing] = [
        ids.filter((id) => rests.has(String(id))),
        ids.filter((id) => !rests.has(String(id))),
      ];
      for (const id of killed) rests.delete(String(id));
      return { cursorsKilled: killed, cursorsNotFound: missing, cursorsAlive: [], cursorsUnknown: [], ok: 1 };
    },
    killAll: () => rests.clear(),
    get size() {
      return rests.size;
    },
  };
};

const isOn = (value: unknown): boolean => value === true || (value !== false && Number(value) !== 0);

const picked = (document: Document, way: readonly string[], into: Document): void => {
  const [name, ...rest] = way as [string, ...string[]];
  if (!Object.hasOwn(document, name)) return;
  const value: unknown = document[name];
  if (rest.length === 0) into[name] = value;
  else if (isDocument(value)) picked(value, rest, (into[name] ??= {}) as Document);
};

const without = (document: Document, way: readonly string[]): Document => {
  const [name, ...rest] = way as [string, ...string[]];
  const entries = Object.entries(document);
  if (rest.length === 0) return Object.fromEntries(entries.filter(([one]) => one !== name));
  return Object.fromEntries(
    entries.map(([one, value]) => [one, one === name && isDocument(value) ? without(value, rest) : value]),
  );
};

export const projectionOf = (projection: unknown): ((document: Document) => Document) => {
  if (!isDocument(projection) || Object.keys(projection).length === 0) return (document) => document;
  const { _id: id = true, ...fields } = projection;
  const ways = Object.keys(fields).map((path) => path.split('.'));
  const isInclusion = Object.values(fields).some(isOn) || (ways.length === 0 && isOn(id));
  if (isInclusion && !Object.values(fields).every(isOn))
    throw failure(31254, 'Cannot do exclusion in inclusion projection');
  if (!isInclusion) {
    const all = isOn(id) ? ways : [['_id'], ...ways];
    return (document) => all.reduce(without, document);
  }
  return (document) => {
    const into: Document = isOn(id) ? { _id: document['_id'] } : {};
    for (const way of ways) picked(document, way, into);
    return into;
  };
};

export interface Answer {
  readonly plan: Plan;
  readonly found: readonly Stored[];
  readonly examined: number;
}

export interface Question {
  readonly filter: Document;
  readonly sort?: unknown;
  readonly limit?: number;
  readonly skip?: number;
}

export const ask = (collection: Collection | undefined, question: Question): Answer => {
  const sort = sortOf(question.sort);
  const holds = filterOf(question.filter);
  const plan = planOf(collection, question.filter, sort);
  const skip = question.skip ?? 0;
  const limit = Math.abs(question.limit ?? 0) || Infinity;
  const found: Stored[] = [];
  let examined = 0;
  for (const stored of candidatesOf(collection, plan)) {
    examined += 1;
    if (holds(stored.document)) found.push(stored);
    if (!plan.needsSort && found.length >= skip + limit) break;
  }
  const ordered = plan.needsSort ? sorted(found, sort) : found;
  return { plan, examined, found: ordered.slice(skip, skip + limit) };
};

const questionOf = (body: Document): Question => ({
  filter: (body['filter'] ?? body['query'] ?? {}) as Document,
  sort: body['sort'],
  limit: numberOf(body['limit']),
  skip: numberOf(body['skip']),
});

const checkHint = (collection: Collection | undefined, hint: unknown): void => {
  if (hint === undefined || collection === undefined) return;
  const isThere = [...collection.indexes.values()].some(({ spec }) =>
    typeof hint === 'string' ? spec.name === hint : keyOf(spec.key) === keyOf(hint),
  );
  if (!isThere && !(isDocument(hint) && '$natural' in hint))
    throw failure(2, 'hint provided does not correspond to an existing index');
};

export const find = (view: View, namespace: string, body: Document, cursors: Cursors): Document => {
  const collection = view.collection(namespace);
  checkHint(collection, body['hint']);
  const project = projectionOf(body['projection']);
  const documents = ask(collection, questionOf(body)).found.map(({ document }) => project(document));
  const isSingle = body['singleBatch'] === true || numberOf(body['limit']) < 0;
  return cursors.open(namespace, documents, numberOf(body['batchSize'], -1), isSingle);
};

export const count = (view: View, namespace: string, body: Document): Document => ({
  n: ask(view.collection(namespace), questionOf(body)).found.length,
  ok: 1,
});

export const distinct = (view: View, namespace: string, body: Document): Document => {
  const values = new Map<string, unknown>();
  for (const { document } of ask(view.collection(namespace), questionOf(body)).found)
    for (const value of valuesAt(document, String(body['key'])).flat()) values.set(keyOf(value), value);
  return { values: [...values.values()], ok: 1 };
};

export const explain = (view: View, database: string, body: Document): Document => {
  const inner = body['explain'] as Document;
  const [command, name] = Object.entries(inner)[0] ?? [];
  if (command !== 'find' && command !== 'count') throw failure(2, `This server explains no ${command}.`);
  const question = questionOf(inner);
  const { plan, found, examined } = ask(view.collection(`${database}.${String(name)}`), question);
  return {
    queryPlanner: {
      namespace: `${database}.${String(name)}`,
      parsedQuery: question.filter,
      winningPlan: explained(plan, question.filter),
      rejectedPlans: [],
    },
    executionStats: {
      executionSuccess: true,
      nReturned: found.length,
      totalKeysExamined: plan.index === undefined ? 0 : examined,
      totalDocsExamined: examined,
    },
    ok: 1,
  };
};

type Stage = (documents: readonly Document[]) => readonly Document[];

/** The groups of `countDocuments`: a constant `_id` and sums of constants. */
const group = (spec: Document): Stage => {
  const { _id: id, ...sums } = spec;
  if (isDocument(id) || String(id).startsWith('$'))
    throw failure(15952, 'This server groups everything into one.');
  return (documents) => {
    if (documents.length === 0) return [];
    const totals = Object.entries(sums).map(([name, sum]) => {
      const step = isDocument(sum) ? sum['$sum'] : undefined;
      if (Number.isNaN(Number(step ?? NaN))) throw failure(15952, 'This server sums only constants.');
      return [name, documents.length * Number(step)] as const;
    });
    return [{ _id: id, ...Object.fromEntries(totals) }];
  };
};

const asStored = (documents: readonly Document[]): Stored[] =>
  documents.map((document) => ({ id: keyOf(document['_id']), document, bytes: 0 }));

const STAGES: Readonly<Record<string, (spec: unknown) => Stage>> = {
  $match: (spec) => {
    const holds = filterOf(spec as Document);
    return (documents) => documents.filter(holds);
  },
  $sort: (spec) => (documents) => sorted(asStored(documents), sortOf(spec)).map(({ document }) => document),
  $limit: (spec) => (documents) => documents.slice(0, Number(spec)),
  $skip: (spec) => (documents) => documents.slice(Number(spec)),
  $project: (spec) => {
    const project = projectionOf(spec);
    return (documents) => documents.map(project);
  },
  $count: (spec) => (documents) => (documents.length === 0 ? [] : [{ [String(spec)]: documents.length }]),
  $group: (spec) => group(spec as Document),
};

export const aggregate = (view: View, namespace: string, body: Document, cursors: Cursors): Document => {
  let stages = body['pipeline'] as Document[];
  const first = stages[0]?.['$match'] as Document | undefined;
  if (first !== undefined) stages = stages.slice(1);
  let documents: readonly Document[] = ask(view.collection(namespace), { filter: first ?? {} }).found.map(
    ({ document }) => document,
  );
  for (const stage of stages) {
    const [name, spec] = Object.entries(stage)[0] as [string, unknown];
    const make = STAGES[name];
    if (make === undefined) throw failure(40324, `Unrecognized pipeline stage name: '${name}'`);
    documents = make(spec)(documents);
  }
  const batchSize = numberOf((body['cursor'] as Document | undefined)?.['batchSize'], -1);
  return cursors.open(namespace, documents, batchSize);
};
