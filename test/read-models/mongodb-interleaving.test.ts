import type { Collection, Document } from '../../projections/projector';
import { mongoConnection, type MongoConnection } from '../../src/mongodb/connection';
import { mongodbReadModels } from '../../src/read-models/mongodb/mongodb-read-models';
import type { DocumentKey, Generation, GenerationId, ReadModels } from '../../src/read-models/read-models';
import { startMongoServer, type MongoServer } from '../support/mongodb/server';

/**
 * Three projectors project the same events into one generation, are killed before and after any of their writes, and lose
 * whatever no majority had when the primary fails. Afterwards the documents must be what a plain fold gives. Many
 * generations are projected at the same time, so that a failing primary hits all of them at different steps.
 */
const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000);
const ROUNDS = Number(process.env['ROUNDS'] ?? 1);
const GENERATIONS = 10;
/** Of each round. A driver needs some time to find the primary again. */
const DISTURBANCES = 12;
const EVENTS = 40;
const LOG = 'log';
const KILLED = 'killed here';

type Random = () => number;

const randomFrom = (seed: number): Random => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
};

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

/** Rows come before the heads that count them. */
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

/** A token that is deleted is removed, so that tombstones are met, too. */
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

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Set when the test ends, however it does: nothing must go on trying then. */
const stopped = { isStopped: false };

/** Started again whenever it is killed or fails. */
const project = async (
  readModels: ReadModels,
  id: GenerationId,
  events: readonly Happened[],
  random: Random,
): Promise<void> => {
  while (!stopped.isStopped)
    try {
      const generation = await readModels.open(id, collections, LOG);
      while (!(await projectOnce(generation, events, random)));
      return;
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      if (message !== KILLED && code !== 'read_models_unavailable') throw error;
      await pause(1);
    }
};

const documentsOf = async (generation: Generation): Promise<Readonly<Record<string, Document>>> => {
  const found: Record<string, Document> = {};
  for (const { name: collection } of collections)
    for (const row of await generation.reader.scan(collection, 1_000))
      found[nameOf({ ...row, collection })] = row.document;
  return found;
};

const WRITES = ['update', 'insert'];

/** The primary fails a few times, and connections are lost around writes. */
const disturb = async (server: MongoServer, random: Random, isOver: () => boolean): Promise<number> => {
  let rollbacks = 0;
  let next = 0;
  for (let i = 0; i < DISTURBANCES && !isOver(); i += 1) {
    next += 10 + Math.floor(random() * 60);
    while (server.roundTrips.count({ command: WRITES }) < next && !isOver()) await pause(2);
    const when = random() < 0.5 ? 'before' : 'after';
    server.faults.add({ command: WRITES, skip: Math.floor(random() * 10), action: { type: 'drop', when } });
    if (random() < 0.4) continue;
    server.replication.hold();
    await pause(random() * 40);
    if (random() < 0.3) server.replication.release();
    else {
      server.rollBack();
      server.replication.release();
      rollbacks += 1;
    }
  }
  server.faults.clear();
  return rollbacks;
};

describe('three projectors on one generation in MongoDB', () => {
  let server: MongoServer;
  const connections: MongoConnection[] = [];
  /** Where the driver repeats what was lost, it mostly wins again: some must not. */
  const connect = async (retries = true): Promise<MongoConnection> => {
    const url = `${server.url}?retryWrites=${retries}`;
    const connection = await mongoConnection(url, { waitMs: 10_000, onError: () => undefined });
    connections.push(connection);
    return connection;
  };
  beforeAll(async () => {
    server = await startMongoServer();
    server.interleave(true);
  });
  afterAll(async () => {
    stopped.isStopped = true;
    for (const connection of connections) await connection.close();
    await server.close();
  });

  it(
    `give what a plain fold gives, killed at any write and rolled back (${ROUNDS * GENERATIONS} runs, SEED=${SEED})`,
    async () => {
      const projectors = await Promise.all(
        [1, 2, 3].map(async (i) => {
          const random = randomFrom(SEED + i);
          const onWrite = (): void => {
            if (random() < 0.02) throw new Error(KILLED);
          };
          const readModels = await mongodbReadModels(await connect(i === 1), { onWrite, finishAfterMs: 0 });
          return { readModels, random };
        }),
      );
      let rollbacks = 0;
      for (let round = 0; round < ROUNDS; round += 1) {
        const runs = Array.from({ length: GENERATIONS }, (_, i) => ({
          id: { projection: 'model', version: 1 + round, generation: 1 + i },
          events: someEvents(randomFrom(SEED + 1_000 * round + i)),
        }));
        let isOver = false;
        server.roundTrips.reset();
        const disturbing = disturb(server, randomFrom(SEED + round), () => isOver);
        await Promise.all(
          runs.flatMap(({ id, events }) =>
            projectors.map(({ readModels, random }) => project(readModels, id, events, random)),
          ),
        ).finally(() => (isOver = true));
        rollbacks += await disturbing;
        const onlooker = await mongodbReadModels(await connect());
        for (const { id, events } of runs) {
          const generation = await onlooker.open(id, collections, LOG);
          const found = await documentsOf(generation);
          expect({ run: id, found }).toEqual({ run: id, found: plainFold(events) });
        }
        await onlooker.close();
      }
      for (const { readModels } of projectors) await readModels.close();
      expect(rollbacks).toBeGreaterThan(0);
      console.log(`${ROUNDS * GENERATIONS} runs with ${rollbacks} rollbacks, SEED=${SEED}`);
    },
    60_000 + 60_000 * ROUNDS,
  );
});
