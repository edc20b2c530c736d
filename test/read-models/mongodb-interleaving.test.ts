import type { Collection, Document } from '../../projections/projector';
import { pause } from '../../src/async/clock';
import { mongoConnection, type MongoConnection } from '../../src/mongodb/connection';
import {
  newGeneration,
  type DocumentKey,
  type Generation,
  type GenerationId,
  type ReadModels,
} from '../../src/read-models/read-models';
import { describeMongodb } from '../support/mongodb/databases';
import { mongodbBehindProxy, readModelsOn, type DisturbedMongodb } from '../support/mongodb-under-test';
import { storedOf } from '../support/generations';
import { seed } from '../support/property';
import { randomFrom, type Random } from '../support/random';

/**
 * Three projectors project the same events into one generation. They are killed before and after any of their writes,
 * lose their connections, and do not learn whether a write was made. Afterwards the documents must equal a plain fold.
 * Many generations are projected at the same time, so that lost connections hit them at different steps. Some are
 * removed in the meantime and must stay removed; their numbers are not reused. Replacing documents with `$lte` instead
 * of `$lt` would go unnoticed, and is harmless: a commit writes the same documents whoever writes them.
 */
const ROUNDS = Number(process.env['ROUNDS'] ?? 1);
const GENERATIONS = 10;
/** Per round. A driver needs some time to find the primary again. */
const DISTURBANCES = 30;
const EVENTS = 40;
const LOG = 'log';
const KILLED = 'killed here';

interface Happened {
  readonly position: number;
  readonly tenant: string;
  readonly token: number;
  readonly type: 'created' | 'used' | 'deleted';
  readonly month: number;
}

const someEvents = (random: Random): readonly Happened[] =>
  Array.from({ length: EVENTS }, (_, i) => ({
    position: i + 1,
    tenant: `tenant-${Math.floor(random() * 2)}`,
    token: Math.floor(random() * 6),
    type: (['created', 'used', 'deleted'] as const)[Math.floor(random() * 3)] ?? 'used',
    month: Math.max(0, Math.floor((i + 1) / 15) - Math.floor(random() * 2)),
  }));

/** Rows are written before the heads that count them. */
const collections: readonly Collection[] = ['rows', 'tokens', 'counts', 'heads'].map((name) => ({
  name,
  indexes: {},
}));

const keyOf = (tenantId: string, collection: string, key: string | number): DocumentKey => ({
  tenantId,
  collection,
  key: String(key),
});

/** Any document may depend on any other. */
const touched = ({ tenant, token, month, type, position }: Happened) => ({
  token: keyOf(tenant, 'tokens', token),
  alive: keyOf(tenant, 'counts', 'alive'),
  active: keyOf(tenant, 'counts', `active ${month}`),
  head: keyOf(tenant, 'heads', 'all'),
  typeHead: keyOf(tenant, 'heads', type),
  row: keyOf(tenant, 'rows', position),
});

interface Documents {
  get(key: DocumentKey): Document | undefined;
  put(key: DocumentKey, document: Document | undefined): void;
}

/** Deleting a token removes its document, so tombstones occur as well. */
const fold = (event: Happened, { get, put }: Documents): void => {
  const keys = touched(event);
  const numberIn = (key: DocumentKey): number => (get(key)?.['n'] as number | undefined) ?? 0;
  const add = (key: DocumentKey, n: number): void => put(key, { n: numberIn(key) + n });
  const token = get(keys.token) as { months: readonly number[] } | undefined;
  const months = token?.months ?? [];
  if (event.type === 'created' && token === undefined) add(keys.alive, 1);
  if (event.type === 'deleted' && token !== undefined) add(keys.alive, -1);
  const isActive = event.type !== 'deleted' && !months.includes(event.month);
  if (isActive) add(keys.active, 1);
  put(
    keys.token,
    event.type === 'deleted' ? undefined : { months: isActive ? [...months, event.month] : months },
  );
  add(keys.head, 1);
  add(keys.typeHead, 1);
  put(keys.row, { numbers: [numberIn(keys.head), numberIn(keys.typeHead)] });
};

const nameOf = ({ tenantId, collection, key }: DocumentKey): string => `${tenantId} ${collection} ${key}`;

const inMemory = () => {
  const all = new Map<string, { readonly key: DocumentKey; readonly document: Document | undefined }>();
  const documents: Documents = {
    get: (key) => all.get(nameOf(key))?.document,
    put: (key, document) => void all.set(nameOf(key), { key, document }),
  };
  return { all, ...documents };
};

const plainFold = (events: readonly Happened[]): Readonly<Record<string, Document>> => {
  const memory = inMemory();
  for (const event of events) fold(event, memory);
  const present = [...memory.all].flatMap(([name, { document }]) =>
    document === undefined ? [] : [[name, document] as const],
  );
  return Object.fromEntries(present);
};

const projectOnce = async (
  generation: Generation,
  events: readonly Happened[],
  random: Random,
): Promise<boolean> => {
  const { n, to } = await generation.control();
  const done = Number(to?.position ?? 0);
  const batch = events.slice(done, done + 1 + Math.floor(random() * 7));
  const last = batch.at(-1);
  if (last === undefined) return true;
  const memory = inMemory();
  const keys = batch.flatMap((event) => Object.values(touched(event)));
  const loaded = await generation.load(keys);
  keys.forEach((key, i) => memory.put(key, loaded[i]));
  const before = new Map([...memory.all].map(([name, { document }]) => [name, document]));
  for (const event of batch) fold(event, memory);
  const changed = [...memory.all].filter(([name, { document }]) => before.get(name) !== document);
  const writes = changed.map(([, { key, document }]) => ({ ...key, document }));
  const position = String(last.position).padStart(16, '0');
  await generation.commit(n, { position, eventId: `event ${last.position}` }, writes);
  return false;
};

interface Run {
  readonly id: GenerationId;
  readonly events: readonly Happened[];
}

/** Set when the test ends, however it ends, so that nothing keeps retrying. */
const stopped = { isStopped: false };

/** A failing server is retried. The loser of a compare-and-set is told so, and gets no duplicate key error. */
const waitUnlessFatal = async (error: unknown): Promise<void> => {
  const { code, message } = error as { code?: string; message: string };
  const isExpected = message === KILLED || code === 'read_models_unavailable';
  if (!isExpected || message.includes('E11000')) throw error;
  await pause(1);
};

const retrying = async <T>(work: () => Promise<T>): Promise<T> => {
  for (;;)
    try {
      return await work();
    } catch (error) {
      if (stopped.isStopped) throw error;
      await waitUnlessFatal(error);
    }
};

/** Restarted whenever it is killed or fails, until everything is projected. */
const project = (
  readModels: ReadModels,
  id: GenerationId,
  events: readonly Happened[],
  random: Random,
): Promise<void> =>
  retrying(async () => {
    const generation = await readModels.open(id, collections);
    while (!stopped.isStopped && !(await projectOnce(generation, events, random)));
  });

/** After some commits, and while others are being made. */
const remove = async (readModels: ReadModels, id: GenerationId): Promise<void> => {
  const commits = async (): Promise<number> => (await (await readModels.open(id, collections)).control()).n;
  while ((await retrying(commits)) < 3 && !stopped.isStopped) await pause(1);
  const isThere = async (): Promise<boolean> => (await storedOf(readModels, id)) !== undefined;
  while (await retrying(isThere)) await retrying(() => readModels.remove(id, { live: true }));
};

const unlessRemoved = (work: Promise<void>): Promise<void> =>
  work.catch((error: unknown) => {
    if ((error as { code?: unknown }).code !== 'generation_removed') throw error;
  });

const documentsOf = async (generation: Generation): Promise<Readonly<Record<string, Document>>> => {
  const found: Record<string, Document> = {};
  for (const { name: collection } of collections)
    for (const row of await generation.reader.scan(collection, 1_000))
      found[nameOf({ ...row, collection })] = row.document;
  return found;
};

const WRITES = ['update', 'insert'];

/** Connections are lost around writes, and sometimes all at once. */
const disturb = async (server: DisturbedMongodb, random: Random, isOver: () => boolean): Promise<void> => {
  let next = 0;
  for (let i = 0; i < DISTURBANCES && !isOver(); i += 1) {
    next += 5 + Math.floor(random() * 25);
    while (server.roundTrips.count({ command: WRITES }) < next && !isOver()) await pause(2);
    const when = random() < 0.5 ? 'before' : 'after';
    server.faults.add({ command: WRITES, skip: Math.floor(random() * 10), action: { type: 'drop', when } });
    if (random() < 0.25) server.cut();
  }
};

describeMongodb('three projectors of one generation in MongoDB', () => {
  let server: DisturbedMongodb;
  const connections: MongoConnection[] = [];
  /** When the driver retries a lost write it mostly wins again, so some generations do not retry. */
  const connect = async (retries = true): Promise<MongoConnection> => {
    const url = `${server.url}&retryWrites=${retries}`;
    const connection = await mongoConnection(url, { waitMs: 10_000, onError: () => undefined });
    connections.push(connection);
    return connection;
  };
  beforeAll(async () => {
    server = await mongodbBehindProxy();
    const random = randomFrom(seed);
    const slow = { type: 'slow', ms: 3 } as const;
    server.faults.add({ command: WRITES, when: () => random() < 0.2, times: Infinity, action: slow });
  });
  afterAll(async () => {
    stopped.isStopped = true;
    for (const connection of connections) await connection.close();
  });

  const startProjectors = () =>
    Promise.all(
      [1, 2, 3].map(async (i) => {
        const random = randomFrom(seed + i);
        const onWrite = (): void => {
          if (random() < 0.02) throw new Error(KILLED);
        };
        const readModels = await readModelsOn(await connect(i === 1), { onWrite, finishAfterMs: 0 });
        return { readModels, random };
      }),
    );
  type Projectors = Awaited<ReturnType<typeof startProjectors>>;

  const projectAll = async (
    projectors: Projectors,
    runs: readonly Run[],
    removed: readonly GenerationId[],
  ) => {
    const byAll = (id: GenerationId, events: readonly Happened[]) =>
      projectors.map(({ readModels, random }) => project(readModels, id, events, random));
    const [{ readModels }] = projectors as [Projectors[0]];
    await Promise.all([
      ...runs.flatMap(({ id, events }) => byAll(id, events)),
      ...removed.flatMap((id) => byAll(id, runs[0]!.events).map(unlessRemoved)),
      ...removed.map((id) => remove(readModels, id)),
    ]);
  };

  const runRound = async (projectors: Projectors, round: number): Promise<void> => {
    const version = 1 + round;
    const newId = async (): Promise<GenerationId> => {
      const id = newGeneration('model', version);
      await retrying(() => projectors[0]!.readModels.create(id, collections, LOG));
      return id;
    };
    const runs: Run[] = [];
    for (let i = 0; i < GENERATIONS; i += 1)
      runs.push({ id: await newId(), events: someEvents(randomFrom(seed + 1_000 * round + i)) });
    const removed = [await newId(), await newId()];
    let isOver = false;
    server.roundTrips.reset();
    const disturbing = disturb(server, randomFrom(seed + round), () => isOver);
    await projectAll(projectors, runs, removed).finally(() => (isOver = true));
    await disturbing;

    const onlooker = await readModelsOn(await connect());
    for (const { id, events } of runs) {
      const found = await documentsOf(await onlooker.open(id, collections));
      expect({ run: id, found }).toEqual({ run: id, found: plainFold(events) });
    }
    const { generations } = await onlooker.state();
    const there = generations.filter((id) => id.version === version).map(({ generation }) => generation);
    expect(there.toSorted()).toEqual(runs.map(({ id }) => id.generation).toSorted());
    await onlooker.close();
  };

  it(
    `produce the result of a plain fold, even if killed at any write or cut off from the server (${ROUNDS * GENERATIONS} runs, SEED=${seed})`,
    async () => {
      const projectors = await startProjectors();
      for (let round = 0; round < ROUNDS; round += 1) await runRound(projectors, round);
      for (const { readModels } of projectors) await readModels.close();
      expect(server.faults.affected).toBeGreaterThan(0);
    },
    90_000 + 90_000 * ROUNDS,
  );
});
