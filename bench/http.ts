import { bench, builds, median, printFigures } from './builds';
import {
  get,
  MANY,
  measureByTurns,
  put,
  startService,
  type Load,
  type Measured,
  type Target,
} from './http-load';
import { serveHello, serveLibraries } from './koa-servers';
import { startPrinting, type Running } from './processes';

/**
 * What is the overhead of a request? `GET /tenants/self`, `GET /logs`, and `PUT /tenants/self` from 32 connections to 32
 * tenants and from a single client, without access log and rate limits, compared to a bare Koa that says hello and to the
 * service's libraries without the service; and `GET /tenants/self` with everything on. All take turns in one run, with the client in its own process.
 * With BASE, so does the `main.js` of another build. `npm run bench -- http [ROUNDS] [SECONDS]`
 */
const ROUNDS = Number(process.argv[2] ?? 3);
const SECONDS = Number(process.argv[3] ?? 2);

const report = (measured: ReadonlyMap<Load, readonly Measured[]>): void => {
  const [bare = []] = measured.values();
  for (const [{ name, connections }, each] of measured) {
    const rate = median(each.map((result) => result.rate));
    printFigures(`${name}, median of ${ROUNDS}`, {
      'per second': rate,
      'ms each': (connections * 1_000) / rate,
      'µs of processor': median(each.map((result) => result.cost)),
      'of bare Koa': median(each.map((result, round) => result.rate / (bare[round]?.rate ?? NaN))),
      'by processor time': median(each.map((result, round) => (bare[round]?.cost ?? NaN) / result.cost)),
    });
  }
};

const loadsOf = (name: string, logging: Target, quiet: Target): readonly (readonly [Load, Target])[] => {
  const oneKey = (target: Target): Target => ({ ...target, keys: target.keys.slice(0, 1) });
  return [
    [get(`${name}: GET /tenants/self with access log and limits`, '/tenants/self'), oneKey(logging)],
    [get(`${name}: GET /tenants/self`, '/tenants/self'), oneKey(quiet)],
    [get(`${name}: GET /logs`, '/logs'), quiet],
    [put(`${name}: PUT /tenants/self to ${MANY} tenants`, MANY), quiet],
    [put(`${name}: PUT /tenants/self of one client`, 1), quiet],
  ];
};

const measure = async (root: string): Promise<void> => {
  const koa = (role: string): Promise<Running> => startPrinting([__filename, '0', '0', role]);
  const bare = { server: await koa('hello'), keys: ['none'] };
  const libraries = { server: await koa('libraries'), keys: ['none'] };
  const logging = { server: await koa('logging'), keys: ['none'] };
  const loads = new Map<Load, Target>([
    [get('bare Koa: hello', '/'), bare],
    [get('the libraries alone', '/tenants/self'), libraries],
    [get('the libraries alone, with a log line', '/tenants/self'), logging],
  ]);
  for (const { name, main } of builds) {
    const whole = await startService(root, {}, main);
    const quiet = await startService(root, { LOG_LEVEL: 'warn', RATE_LIMITS: 'off' }, main);
    for (const [load, target] of loadsOf(name, whole, quiet)) loads.set(load, target);
  }
  report(await measureByTurns(loads, ROUNDS, SECONDS));
  for (const server of new Set([...loads.values()].map((target) => target.server))) await server.stop();
};

const role = process.argv[4];
if (role === 'hello') serveHello();
else if (role === 'libraries') serveLibraries('warn');
else if (role === 'logging') serveLibraries('info');
else void bench(measure);
