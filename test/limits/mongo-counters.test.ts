import type { Db } from 'mongodb';
import type { RateLimiterRes } from 'rate-limiter-flexible';
import { readPolicies, type Policy } from '../../src/limits/policies';
import { mongoLimiter, rateLimits, type RateLimits } from '../../src/limits/rate-limits';
import { connectMongodb, mongodbBehindProxy, type DisturbedMongodb } from '../support/mongodb-under-test';
import { describeMongodb, mongodbUrl } from '../support/mongodb/databases';
import { until } from '../support/waiting';

type Counted = Awaited<ReturnType<RateLimits['count']>>;

const A = '192.0.2.1';
/** A server waits 200 ms; here no instance may count alone only because the machine is busy. */
const WITHIN_MS = 20_000;

const instanceOn = async (db: Db, policies: readonly Policy[], sharedWithinMs = WITHIN_MS) => {
  const shared = await mongoLimiter(db);
  const made = rateLimits(policies, {
    shared,
    sharedWithinMs,
    shownAloneMs: 10_000,
    report: () => undefined,
  });
  const many = async (count: number, address = A): Promise<Counted> => {
    let last: Counted | undefined;
    for (let i = 0; i < count; i += 1) last = await made.count('GET', '/x', address);
    return last!;
  };
  return { ...made, many };
};

describeMongodb('rate counters in MongoDB', () => {
  const instances = async (policies: readonly Policy[]) => {
    const url = mongodbUrl();
    const { db } = await connectMongodb(url);
    return {
      db,
      first: await instanceOn(db, policies),
      second: await instanceOn((await connectMongodb(url)).db, policies),
    };
  };

  it('are exact when two instances take turns', async () => {
    const { first, second } = await instances(readPolicies('global=40/60/60')!);
    for (let i = 0; i < 40; i += 2)
      for (const [instance, left] of [
        [first, 39 - i],
        [second, 38 - i],
      ] as const)
        expect((await instance.many(1)).fields?.RateLimit).toMatch(new RegExp(`r=${left};`));
    expect((await second.many(1)).refused).toMatchObject({ blockStarted: true, retryAfter: 60 });
    expect((await first.many(1)).refused).toMatchObject({ blockStarted: false });
    expect((await first.many(1, '192.0.2.2')).refused).toBeUndefined();
    expect([first.status(), second.status()]).toMatchObject([
      { shared: true, blocks_started: 0, counted_alone: 0 },
      { shared: true, blocks_started: 1, counted_alone: 0 },
    ]);
  });

  it('are exact when two instances count at the same time', async () => {
    const url = mongodbUrl();
    const [policy] = readPolicies('global=30/60/60')!;
    const limiters = await Promise.all(
      [url, url].map(async (at) => {
        const limiterOf = await mongoLimiter((await connectMongodb(at)).db);
        return limiterOf(policy!);
      }),
    );
    const outcomes = await Promise.allSettled(
      Array.from({ length: 25 }, () => limiters.map((limiter) => limiter.consume(A))).flat(),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(30);
    const beyond = outcomes.map((outcome) =>
      outcome.status === 'rejected' ? (outcome.reason as RateLimiterRes) : undefined,
    );
    expect(beyond.filter((result) => result?.consumedPoints === 31)).toHaveLength(1);
  });

  it('start again after the window, and after the block, which requests do not extend', async () => {
    const { db, first, second } = await instances(readPolicies('global=2/60/120')!);
    const kept = db.collection('rate_counters', { readConcern: { level: 'local' } });
    /** Anything due at a time is made due this much sooner. */
    const pass = async (ms: number): Promise<void> => {
      for (const { _id, expire } of await kept.find({}).toArray())
        await kept.updateOne({ _id }, { $set: { expire: new Date((expire as Date).getTime() - ms) } });
    };
    await first.many(2);
    await pass(60_000);
    expect((await second.many(2)).refused).toBeUndefined();
    expect((await first.many(1)).refused).toMatchObject({ blockStarted: true, retryAfter: 120 });
    await pass(119_500);
    expect((await second.many(1)).refused?.retryAfter ?? 1).toBe(1);
    await until(async () => (await second.many(1)).refused === undefined);
    expect((await first.many(1)).refused).toBeUndefined();
  });

  it('have a unique index on the key, and one on the expiry', async () => {
    const { db } = await instances(readPolicies('global=2/1/2')!);
    const indexes = await db.collection('rate_counters').indexes();
    const unique = indexes.filter((index) => index.unique === true).map(({ key }) => key);
    expect(unique).toEqual([{ key: 1 }]);
    expect(indexes.map(({ key }) => key)).toContainEqual({ expire: -1 });
  });
});

describeMongodb('rate counters in a failing MongoDB', () => {
  let server: DisturbedMongodb;
  beforeEach(async () => {
    server = await mongodbBehindProxy();
  });

  const counting = () => server.roundTrips.count({ command: 'findAndModify' });

  it('are not read for a blocked address', async () => {
    const { db } = await connectMongodb(server.url);
    const { many } = await instanceOn(db, readPolicies('global=3/60/60')!);
    await many(5);
    const asked = counting();
    expect((await many(20)).refused).toMatchObject({ retryAfter: 60 });
    expect(counting()).toBe(asked);
  });

  it.each([
    ['is down', (): Promise<void> => server.shut(), (): Promise<void> => server.open()],
    ['is frozen', async (): Promise<void> => server.freeze(), async (): Promise<void> => server.thaw()],
  ])('let every request pass while it %s, and count again once it is back', async (_, lose, findAgain) => {
    const { db } = await connectMongodb(server.url);
    const { many, status } = await instanceOn(db, readPolicies('global=1000/60/60')!, 500);
    await many(3);
    const { counted_alone: before } = status();
    await lose();
    expect((await many(1)).refused).toBeUndefined();
    expect(status()).toMatchObject({ shared: false, counted_alone: before + 1 });
    await findAgain();
    await until(async () => {
      const alone = status().counted_alone;
      await many(1);
      return status().counted_alone === alone;
    });
    expect((await many(1)).fields?.RateLimit).toMatch(/r=99[0-6];/);
  });
});
