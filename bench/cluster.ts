import { bench, builds, byTurns, givenNumbers, type Build, type Figures } from './builds';
import { measureBurst } from './cluster-burst';
import {
  FLOOR,
  measureClusteredPuts,
  measureEmbeddedPuts,
  measureInstances,
  measureSlowCommits,
} from './cluster-puts';
import { measureReads } from './cluster-reads';
import { measureIdle } from './idle';
import { measureIngest } from './ingest';
import { replayByTurns } from './replay';
import { eventStore, mongodbServer, placeIn } from './stores';

/**
 * What do writes, bursts and reads cost on an event store and MongoDB, and the same on SQLite beside it? The stores are
 * those that EVENTSTORE_URL and MONGODB_URL name, or a stand-in and a replica set of one on this machine. With BASE, the
 * `main.js` of another build takes turns. `npm run bench -- cluster [PART…] [ROUNDS]`
 */
const [ROUNDS = 3] = givenNumbers;

const INGESTED = 40_000;
const REBUILT = { sqlite: 200_000, mongodb: 20_000 };

type Measure = (root: string, build: Build, mongodbUrl: string) => Promise<Figures>;
type Part = (root: string, mongodbUrl: string) => Promise<void>;

const part =
  (what: string, measure: Measure, compared: readonly Build[] = builds): Part =>
  (root, mongodbUrl) =>
    byTurns(what, ROUNDS, (build) => measure(root, build, mongodbUrl), compared);

const rebuild: Part = async (root, mongodbUrl) => {
  await replayByTurns(root, REBUILT.sqlite, ROUNDS);
  const { url, close } = await eventStore();
  await replayByTurns(root, REBUILT.mongodb, ROUNDS, () => placeIn(url, mongodbUrl));
  await close();
};

const parts: Readonly<Record<string, Part>> = {
  put: part('PUT, clustered, of 1, 32 and 64 clients', measureClusteredPuts, [FLOOR, ...builds]),
  floor: part('PUT, the floor alone', measureClusteredPuts, [FLOOR]),
  instances: part('PUT, one and two instances, 64 clients', measureInstances),
  slow: part('groups, with commits slowed by 100 ms, 64 clients an instance', measureSlowCommits),
  burst: part('20,000 facts appended directly, and PUTs of another tenant', measureBurst),
  ingest: part(`ingest of ${INGESTED} facts, embedded`, (root, build) =>
    measureIngest(root, build, INGESTED),
  ),
  embedded: part('PUT, embedded, of 1 and 32 clients', measureEmbeddedPuts),
  rebuild,
  reads: part('GET /tenants/self on MongoDB', measureReads),
  idle: part('one idle instance', (root, build, url) => measureIdle(root, build, 'clustered', url)),
};

const isNumber = (word: string): boolean => /^[0-9]+$/.test(word);

void bench(async (root) => {
  const named = process.argv.slice(2).filter((word) => !isNumber(word));
  const unknown = named.filter((name) => parts[name] === undefined);
  if (unknown.length > 0)
    throw new Error(`There is no ${unknown.join()}. The parts: ${Object.keys(parts).join()}`);
  const mongodb = await mongodbServer();
  for (const [name, measure] of Object.entries(parts))
    if (named.length === 0 ? name !== 'floor' : named.includes(name)) await measure(root, mongodb.url);
  await mongodb.close();
});
