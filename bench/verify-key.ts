import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { at, bench, builds, givenNumbers, median, printFigures, type Build } from './builds';
import { makeLog } from './given-log';
import { get, MANY, measureByTurns, type Load, type Measured, type Target } from './http-load';
import { serveDigests, serveHello } from './koa-servers';
import { MAIN, runToEnd, startPrinting, startServer, type Environment, type Running } from './processes';
import { inOwnPlace, mongodbServer } from './stores';

/**
 * What is the overhead of asking whether a key is valid? `POST /keys/verify` beside a Koa that parses the body and hashes
 * the two keys, and `GET /permissions` beside one that says hello, all by turns; then the same question about the keys of
 * 1,000 tenants, in a cluster. `npm run bench -- verify-key [ROUNDS] [SECONDS]`
 */
const [ROUNDS = 5, SECONDS = 2] = givenNumbers;
const TENANTS_IN_CLUSTER = 1_000;

const verify = (name: string, path: string, serviceKey: string): Load => ({
  name,
  method: 'POST',
  path,
  connections: MANY,
  serviceKey,
});

interface Service extends Target {
  readonly serviceKey: string;
}

const start = async (root: string, main: string, tenants: number, place: Environment): Promise<Service> => {
  const env = { DATA_DIR: mkdtempSync(join(root, 'data-')), ...place };
  const customers = await makeLog(env, { tenants }, main);
  const create = ['service', 'create', '--name', 'Bench', '--may', 'verify', '--json'];
  const { key } = JSON.parse((await runToEnd(create, env, main)).stdout) as { readonly key: string };
  const server = await startServer({ ...env, LOG_LEVEL: 'warn', RATE_LIMITS: 'off' }, main);
  return { server, keys: customers.map((customer) => customer.key), serviceKey: key };
};

const rates = (measured: readonly Measured[] = []): readonly number[] => measured.map(({ rate }) => rate);

const ratio = (one: readonly number[], other: readonly number[]): number =>
  median(one.map((rate, round) => rate / (other[round] ?? NaN)));

const measureEmbedded = async (root: string, { name, main }: Build): Promise<void> => {
  const koa = (role: string): Promise<Running> => startPrinting([__filename, '0', '0', role]);
  const [hello, digests] = [await koa('hello'), await koa('digests')];
  const service = await start(root, main, 1, {});
  const none = ['none'];
  const loads: readonly (readonly [Load, Target])[] = [
    [get('bare Koa: GET', '/'), { server: hello, keys: none }],
    [get(`${name}: GET /permissions`, '/permissions'), service],
    [verify('Koa with a body and two digests: POST', '/', 'none'), { server: digests, keys: service.keys }],
    [verify(`${name}: POST /keys/verify`, '/keys/verify', service.serviceKey), service],
  ];
  const measured = await measureByTurns(new Map(loads), ROUNDS, SECONDS);
  const [bare = [], permissions = [], koaPost = [], verified = []] = [...measured.values()].map(rates);
  const [ofGet, ofPost] = [ratio(permissions, bare), ratio(verified, koaPost)];
  printFigures('Medians of the rounds', {
    'GET /permissions to bare Koa': ofGet,
    'POST /keys/verify to Koa with a body and two digests': ofPost,
    'the second to the first': ofPost / ofGet,
  });
  for (const server of [hello, digests, service.server]) await server.stop();
};

const measureClustered = async (root: string, place: Environment): Promise<void> => {
  const service = await start(root, MAIN, TENANTS_IN_CLUSTER, place);
  const load = verify(`in a cluster, ${TENANTS_IN_CLUSTER} tenants`, '/keys/verify', service.serviceKey);
  const [measured = []] = (await measureByTurns(new Map([[load, service]]), ROUNDS, SECONDS)).values();
  printFigures('In a cluster', {
    'per second': median(rates(measured)),
    'p50 ms': median(measured.map(({ p50 }) => p50)),
    'p99 ms, worst of the rounds': at(
      measured.map(({ p99 }) => p99),
      1,
    ),
  });
  await service.server.stop();
};

const measure = async (root: string): Promise<void> => {
  for (const build of builds) await measureEmbedded(root, build);
  const mongodb = await mongodbServer();
  await inOwnPlace(mongodb.url, (place) => measureClustered(root, place));
  await mongodb.close();
};

const role = process.argv[4];
if (role === 'hello') serveHello();
else if (role === 'digests') serveDigests();
else void bench(measure);
