import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { at, bench, byTurns, givenNumbers, type Build, type Figures } from './builds';
import { factLines } from './facts';
import { makeLog } from './given-log';
import { measureIngest, startPuts } from './ingest';
import { caughtUp, runToEnd, startServer, type Environment } from './processes';
import { inOwnPlace, mongodbServer } from './stores';

/**
 * How fast are facts taken over HTTP, of two senders with batches of 1,000 and of one with batches of 100, until the read
 * models show them all; and how long does a change to another tenant take meanwhile? Beside it `ingest`.
 * `npm run bench -- facts [ROUNDS] [FACTS]`
 */
const [ROUNDS = 2, FACTS = 20_000] = givenNumbers;
const TENANTS = 10;
const REFUSED_PAUSE_MS = 50;

interface Way {
  readonly senders: number;
  readonly batch: number;
}

/** Sends a batch until all of it is there. Returns how often that was refused. */
const sendBatch = async (url: string, key: string, body: string, batch: number): Promise<number> => {
  for (let refused = 0; ; refused += 1) {
    const response = await fetch(`${url}/facts`, {
      method: 'POST',
      headers: { 'SVC-API-KEY': key, 'Content-Type': 'application/x-ndjson' },
      body,
    });
    const answer = (await response.json()) as { readonly accepted?: number; readonly already_there?: number };
    if ((answer.accepted ?? 0) + (answer.already_there ?? 0) === batch) return refused;
    if (response.status !== 200 && response.status !== 503) throw new Error(JSON.stringify(answer));
    await new Promise((resolve) => setTimeout(resolve, REFUSED_PAUSE_MS));
  }
};

const measureFacts = async (
  root: string,
  { name, main }: Build,
  { senders, batch }: Way,
  place: Environment = {},
): Promise<Figures> => {
  const env = { DATA_DIR: mkdtempSync(join(root, `${name}-`)), ...place };
  const [other, ...tenants] = await makeLog(env, { tenants: TENANTS + 1 }, main);
  const service = await runToEnd(
    ['service', 'create', '--name', 'Bench', '--may', 'facts', '--json'],
    env,
    main,
  );
  const { key } = JSON.parse(service.stdout) as { readonly key: string };
  const ids = tenants.map(({ tenantId }) => tenantId);
  const bodies = Array.from({ length: Math.ceil(FACTS / batch) }, () => factLines(ids, batch));
  const server = await startServer({ ...env, RATE_LIMITS: 'off' }, main);
  const puts = startPuts(server, other?.key ?? '');
  const began = performance.now();
  const times: number[] = [];
  let refused = 0;
  const sender = async (): Promise<void> => {
    for (let body = bodies.pop(); body !== undefined; body = bodies.pop()) {
      const sent = performance.now();
      refused += await sendBatch(server.url, key, body, batch);
      times.push(performance.now() - sent);
    }
  };
  await Promise.all(Array.from({ length: senders }, sender));
  const answered = performance.now() - began;
  // A log that is written to all the time is never followed to its end in a cluster.
  const changes = await puts();
  await caughtUp(server);
  const shown = performance.now() - began;
  await server.stop();
  return {
    'facts/s until answered': (FACTS * 1_000) / answered,
    'facts/s until shown': (FACTS * 1_000) / shown,
    'p50 ms of a batch': at(times, 0.5),
    'p99 ms of a batch': at(times, 0.99),
    'batches sent again': refused,
    PUTs: changes.times.length,
    'PUT p50 ms': at(changes.times, 0.5),
    'PUT p99 ms': at(changes.times, 0.99),
    'PUTs answered before shown': changes.pending,
  };
};

const WAYS: readonly Way[] = [
  { senders: 2, batch: 1_000 },
  { senders: 1, batch: 100 },
];

void bench(async (root) => {
  const mongodb = await mongodbServer();
  await byTurns(`ingest of ${FACTS} facts, embedded`, ROUNDS, (build) => measureIngest(root, build, FACTS));
  await byTurns(`ingest of ${FACTS} facts, clustered`, ROUNDS, (build) =>
    inOwnPlace(mongodb.url, (place) => measureIngest(root, build, FACTS, place)),
  );
  for (const way of WAYS) {
    const what = `${FACTS} facts, ${way.senders} sender(s), batches of ${way.batch}`;
    await byTurns(`${what}, embedded`, ROUNDS, (build) => measureFacts(root, build, way));
    await byTurns(`${what}, clustered`, ROUNDS, (build) =>
      inOwnPlace(mongodb.url, (place) => measureFacts(root, build, way, place)),
    );
  }
  await mongodb.close();
});
