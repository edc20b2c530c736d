import { freshFolder } from '../support/folders';
import { ask, rename } from '../support/http';
import { mongodbBehindProxy, type DisturbedMongodb } from '../support/mongodb-under-test';
import { describeMongodb } from '../support/mongodb/databases';
import { fact, reportFacts } from '../support/reported-facts';
import { allProjected, startService, type Service } from '../support/service';
import { until } from '../support/waiting';

/**
 * How often a request asks MongoDB, counted by a proxy in front of it. Commands sent at the same time are awaited together:
 * `inTurn`, the number of steps in sequence, determines how long a request takes.
 */
interface Trips {
  readonly inTurn: number;
  readonly all: number;
}

/** Everything but what no request waits for, or only for its limits: who projects, and the counters. */
const ASKED = /^(?!read_model_leases$|rate_counters$)/;
/** Slow enough that commands under way at the same time are seen to overlap. */
const SLOW_MS = 10;
const ROWS = 60;
const DATES = 'start_date=2020-01-01&end_date=2100-01-01';

const queryOf = (...dependencies: readonly string[]): string =>
  dependencies.filter((part) => part !== '').join('&');

describeMongodb('the round trips of a request to MongoDB', () => {
  const folder = freshFolder();
  let mongo: DisturbedMongodb;
  let service: Service;
  let actorId: string;
  beforeAll(async () => {
    mongo = await mongodbBehindProxy();
    service = await startService({ DATA_DIR: folder, MONGODB_URL: mongo.url });
    const { id } = (await get('/tenants/self')).json as { id: string };
    const tokens = Array.from({ length: ROWS }, () =>
      fact('TokenUsed', 'e1', { metadata: { traceId: 't1' } }),
    );
    const others = [...tokens.map(() => fact('CardUsed', 'e1')), ...tokens];
    await reportFacts(folder, id, [...tokens, ...others]);
    for (let i = 0; i < 5; i += 1) await rename(service, service.key, 'Acme');
    await until(async () => totalOf(await get('/logs?size=1')) > 3 * ROWS);
    await allProjected(service);
    const { data } = (await get('/logs?entity_type=tenant&size=1')).json as { data: { actor_id: string }[] };
    actorId = data[0]!.actor_id;
    mongo.faults.add({ collection: ASKED, times: Infinity, action: { type: 'slow', ms: SLOW_MS } });
  });
  afterAll(async () => {
    await service.stop();
  });

  const get = (path: string) => ask(`${service.url}${path}`, { key: service.key });
  const totalOf = ({ json }: Awaited<ReturnType<typeof get>>): number =>
    (json as { pagination: { total_items: number } }).pagination.total_items;

  const askedOnce = async (path: string): Promise<Trips> => {
    mongo.roundTrips.reset();
    expect((await get(path)).status).toBe(200);
    const { inTurn, count } = mongo.roundTrips;
    return { inTurn: inTurn({ collection: ASKED }), all: count({ collection: ASKED }) };
  };
  /** On a busy machine, commands sent at once may arrive one after the other; then the request is repeated. */
  const asked = async (path: string, expected: Trips): Promise<Trips> => {
    let found = await askedOnce(path);
    for (let again = 0; again < 5 && found.inTurn > expected.inTurn; again += 1)
      found = await askedOnce(path);
    return found;
  };
  /** The largest number of round trips that any of these requests makes. */
  const most = async (paths: readonly string[], expected: Trips): Promise<Trips> => {
    const found: Trips[] = [];
    for (const path of paths) found.push(await asked(path, expected));
    return {
      inTurn: Math.max(...found.map(({ inTurn }) => inTurn)),
      all: Math.max(...found.map(({ all }) => all)),
    };
  };
  /** Pages of any position and size, with and without dates, from the start and after a cursor. */
  const pages = async (filter: string, isNumbered: boolean): Promise<readonly string[]> => {
    const paths: string[] = [];
    for (const dates of ['', DATES]) {
      const first = (await get(`/logs?${queryOf(filter, dates, 'size=1')}`)).json as {
        pagination: { next: string };
      };
      const start = `start=${encodeURIComponent(first.pagination.next)}`;
      const numbers = isNumbered ? ['size=2&page=2', 'page=99', `${start}&size=1&page=2`] : [];
      for (const place of ['size=1', 'size=100', start, ...numbers])
        paths.push(`/logs?${queryOf(filter, dates, place)}`);
    }
    return paths;
  };

  it('are none for a request that only needs its key, which comes from the event log', async () => {
    expect(await asked('/permissions', { inTurn: 0, all: 0 })).toEqual({ inTurn: 0, all: 0 });
  });

  it.each([
    ['/tenants/self', { inTurn: 1, all: 2 }],
    ['/logs/entity-types', { inTurn: 1, all: 2 }],
    ['/tenants/self/reports/usage', { inTurn: 1, all: 4 }],
  ])('are bounded: %s', async (path, trips) => {
    expect(await asked(path, trips)).toEqual(trips);
  });

  it.each([
    ['', { inTurn: 5, all: 6 }],
    ['entity_type=token', { inTurn: 7, all: 9 }],
    ['entity_id=e1', { inTurn: 7, all: 9 }],
    ['entity_type=token&entity_id=e1', { inTurn: 7, all: 9 }],
    ['actor_id=ACTOR', { inTurn: 7, all: 9 }],
    ['operation=use', { inTurn: 7, all: 9 }],
    ['trace_id=t1', { inTurn: 7, all: 9 }],
  ])('are bounded for any page of the log: %s', async (filter, trips) => {
    expect(await most(await pages(filter.replace('ACTOR', actorId), true), trips)).toEqual(trips);
  });

  it.each([
    ['actor_id=ACTOR&operation=use', { inTurn: 8, all: 10 }],
    ['trace_id=t1&entity_type=token', { inTurn: 7, all: 9 }],
    ['entity_id=e1&operation=use', { inTurn: 7, all: 9 }],
  ])('are bounded for filters without numbers: %s', async (filter, trips) => {
    expect(await most(await pages(filter.replace('ACTOR', actorId), false), trips)).toEqual(trips);
  });

  it('wait once for a majority for a write', async () => {
    mongo.roundTrips.reset();
    const { status, headers } = await rename(service, service.key, 'Acme');
    expect([status, headers.get('SVC-READ-PENDING')]).toEqual([200, null]);
    const awaited = mongo.roundTrips.awaitingMajority().filter((name) => !name.includes('read_model_leases'));
    expect(awaited).toEqual(['commitTransaction']);
  });

  it('do not grow with the number of intervals of counts', async () => {
    for (const interval of ['hour', 'day']) {
      expect((await askedOnce(`/logs/counts?interval=${interval}`)).all).toBeLessThanOrEqual(8);
      const ofTokens = await askedOnce(`/logs/counts?interval=${interval}&entity_type=token`);
      expect(ofTokens.all).toBeLessThanOrEqual(14);
    }
  });
});
