import { randomUUID } from 'node:crypto';
import { pause } from '../../src/async/clock';
import { revokeKey } from '../../src/domain/application-keys';
import { rebuild } from '../../src/projecting/rebuild';
import type { NewTenant } from '../support/beside';
import { crowdAt, type Crowd } from '../support/crowd';
import { ask, rename, type ApiResponse, type AskOptions } from '../support/http';
import { startInstances, type Instances } from '../support/instances';
import { itIf } from '../support/it-if';
import { describeMongodb } from '../support/mongodb/databases';
import { writeAndRead, nothingSeen } from '../support/read-your-writes';
import type { Service, ServiceProcess } from '../support/service';
import { timed, until } from '../support/waiting';

/** The campaign sets more: restarting instances takes long. */
const KILLS = Number(process.env['KILLS'] ?? '1');
const isCampaign = KILLS > 1;
const inCampaign = itIf(isCampaign, 'only in npm run campaign -- instances');
const WRITERS = 2;
/** In the short form, clients leave the processor to the instances that are starting. */
const BETWEEN_MS = isCampaign ? 0 : 100;

/** The lease lasts 5 s; then another instance has to begin. */
const TAKEOVER_MS = 8_000;
/** The most commands per second that an idle instance sends to MongoDB. */
const IDLE_PER_SECOND = 5;

/** The limit on all requests is covered by the tests of limits. */
const LIMIT = 20;
const RATE_LIMITS = `global=off,tokens-search=${LIMIT}/60/10`;

const self = ({ url }: Service): string => `${url}/tenants/self`;
const put = (service: Service, { key }: NewTenant, name: string): Promise<ApiResponse> =>
  rename(service, key, name);
const nameAt = async (service: Service, { key }: NewTenant): Promise<string | undefined> =>
  ((await ask(self(service), { key })).json as { name?: string }).name;

/** Like a load balancer: tries the next instance when a connection is refused or closed without a response. */
const balanced = async ({ running }: Instances, asking: AskOptions, retried: readonly number[] = []) => {
  for (let tries = 0; tries < 60; tries += 1) {
    const service = running[(turn += 1) % running.length]!;
    const answer = await ask(self(service), asking).catch(() => undefined);
    if (answer !== undefined && !retried.includes(answer.status)) return answer;
    await pause(20);
  }
  throw new Error('No instance answered.');
};
let turn = 0;

const rowsOf = async ({ url }: Service, { key }: NewTenant): Promise<number> =>
  (await ask(`${url}/logs?size=1&entity_type=tenant`, { key })).json.pagination.total_items as number;

const projectingOne = async (instances: Instances): Promise<number> => {
  await until(async () => (await instances.projecting()) >= 0);
  return instances.projecting();
};

const shownAfterMs = async (services: readonly Service[], customer: NewTenant, name: string) => {
  const { ms } = await timed(async () => {
    expect((await put(services[0]!, customer, name)).status).toBe(200);
    for (const service of services)
      await until(async () => (await nameAt(service, customer)) === name, 2 * TAKEOVER_MS);
  });
  return ms;
};

/**
 * Kills the projecting instance and starts another in its place. Returns how long it takes until the others show what
 * is written then.
 */
const killProjecting = async (instances: Instances, customer: NewTenant, name: string): Promise<number> => {
  const at = await projectingOne(instances);
  const others = instances.running.filter((_, other) => other !== at);
  await instances.running[at]!.kill();
  const takeover = await shownAfterMs(others, customer, name);
  await instances.replaceKilled(at);
  return takeover;
};

/**
 * Customers write and read through a load balancer that retries failed requests with the same idempotency key. At the
 * end no request has failed, and every acknowledged write is there once.
 */
const loadOn = async (instances: Instances, clients: number, repeated: readonly number[] = []) => {
  const customers = await Promise.all(Array.from({ length: clients }, instances.newTenant));
  const before = await rowsOf(instances.running[0]!, customers[0]!);
  const failed: string[] = [];
  let isDone = false;
  const client = async (customer: NewTenant): Promise<number> => {
    for (let written = 0; ; written += 1) {
      if (isDone) return written;
      const headers = { 'SVC-IDEMPOTENCY-KEY': randomUUID() };
      const write = { key: customer.key, method: 'PUT', headers, body: { name: `Write ${written}` } };
      for (const asking of [write, { key: customer.key }]) {
        const { status, text } = await balanced(instances, asking, repeated);
        if (status !== 200) failed.push(`${status} ${text}`);
      }
      await pause(BETWEEN_MS);
    }
  };
  const running = customers.map(client);
  return {
    stop: async (): Promise<number> => {
      isDone = true;
      const written = await Promise.all(running);
      expect(failed).toEqual([]);
      const shown = customers.map(
        async (customer) => (await rowsOf(instances.running[0]!, customer)) - before,
      );
      expect(await Promise.all(shown)).toEqual(written);
      return written.reduce((sum, one) => sum + one, 0);
    },
  };
};

/** Customers write on one instance and read on the next while `work` runs. */
const underLoad = async <T>(
  instances: Instances,
  lanes: number,
  work: (reads: () => number) => Promise<T>,
): Promise<T> => {
  const crowds: readonly Crowd[] = instances.running.map(({ url }) => crowdAt(url));
  const seen = nothingSeen();
  let isDone = false;
  const customers = await Promise.all(Array.from({ length: lanes }, instances.newTenant));
  const running = customers.map(({ key }) => writeAndRead(crowds, key, seen, () => isDone, BETWEEN_MS));
  try {
    return await work(() => seen.reads);
  } finally {
    isDone = true;
    await Promise.all(running);
    for (const crowd of crowds) crowd.close();
    expect({ stale: seen.stale, failed: seen.failed }).toEqual({ stale: [], failed: [] });
  }
};

describeMongodb('three instances on EventStoreDB and MongoDB', () => {
  let instances: Instances;
  beforeAll(async () => {
    instances = await startInstances(3, { RATE_LIMITS, TRUSTED_PROXIES: '1' });
  }, 120_000);
  afterAll(() => instances.close());

  it('each send MongoDB at most 5 commands per second while idle', async () => {
    const IDLE_MS = 3_000;
    const { roundTrips } = instances.mongo;
    /** After the start, their threads may still be opening the read models. */
    const isIdle = async (): Promise<boolean> => {
      roundTrips.reset();
      await pause(IDLE_MS);
      const all = Object.values(roundTrips.table()).reduce((sum, one) => sum + one, 0);
      return all / (IDLE_MS / 1_000) <= 3 * IDLE_PER_SECOND;
    };
    await until(isIdle, 40_000);
  });

  const rebuilt = () =>
    rebuild(instances.app, {
      acceptDifferences: false,
      onStep: () => undefined,
      onDifference: () => undefined,
    });

  it('show a write to the next reader on any instance, also while read models are switched', async () => {
    await underLoad(instances, 2, async (reads) => {
      const more = (enough = reads() + (isCampaign ? 40 : 8)): Promise<void> =>
        until(() => reads() >= enough, 60_000);
      await more();
      await rebuilt();
      await more();
      await rebuilt();
      await more();
    });
  }, 180_000);

  it('all read what was switched to, at once', async () => {
    const { set } = await rebuilt();
    const readBy = async ({ operationsUrl }: Pick<Service, 'operationsUrl'>): Promise<string> => {
      const { status, json } = await ask(`${operationsUrl}/readyz`);
      return status === 200 ? String(json.read_models.set) : readBy({ operationsUrl });
    };
    expect(await Promise.all(instances.running.map(readBy))).toEqual([set.id, set.id, set.id]);
  });

  it('refuse a revoked key: no write from the revocation on, no read a second later', async () => {
    const { running, newTenant, write } = instances;
    const [revoked, deleted] = [await newTenant(), await newTenant()];
    for (const { key } of [revoked, deleted])
      for (const service of running) expect((await ask(self(service), { key })).status).toBe(200);
    await underLoad(instances, 1, async () => {
      const refused = (customer: NewTenant) =>
        Promise.all(
          running.map(async (service) => {
            const end = performance.now() + 1_000;
            const isRefused = async () => (await ask(self(service), customer)).status === 401;
            expect((await put(service, customer, 'Too late')).status).toBe(401);
            await until(isRefused, Math.max(0, end - performance.now()), 'a refusal');
          }),
        );
      await write(revoked.tenantId, revokeKey(revoked.keyId));
      await refused(revoked);
      expect((await ask(self(running[0]!), { method: 'DELETE', key: deleted.key })).status).toBe(204);
      expect((await ask(self(running[0]!), deleted)).status).toBe(401);
      await refused(deleted);
    });
  }, 120_000);

  it(
    `resume projecting within seconds after the projecting instance was killed, and lose nothing (kills: ${KILLS})`,
    async () => {
      const witness = await instances.newTenant();
      const load = await loadOn(instances, WRITERS, [409, 503]);
      const takeovers: number[] = [];
      for (let kill = 1; kill <= KILLS; kill += 1)
        takeovers.push(await killProjecting(instances, witness, `After kill ${kill}`));
      const writes = await load.stop();
      const verified = await instances.run('projections', 'verify');
      expect([verified.code, verified.stderr]).toEqual([0, expect.anything()]);
      console.table({
        kills: KILLS,
        'acknowledged writes, all of them there once': writes,
        'takeover, all in ms': takeovers.map(Math.round).join(' '),
      });
      expect(Math.max(...takeovers)).toBeLessThan(TAKEOVER_MS);
    },
    isCampaign ? undefined : 210_000,
  );

  inCampaign(
    'restart one after another under load, and no request fails',
    async () => {
      const load = await loadOn(instances, WRITERS);
      for (const at of [0, 1, 2]) await instances.restart(at);
      expect(await load.stop()).toBeGreaterThan(10);
    },
    180_000,
  );

  it('answer what they can while MongoDB is unreachable, and recover on their own', async () => {
    const { running, mongo, newTenant } = instances;
    const customer = await newTenant();
    for (const service of running) expect((await ask(self(service), customer)).status).toBe(200);
    const limited = ({ url }: Service) =>
      ask(`${url}/tokens/search`, { method: 'POST', key: customer.key, body: {} });
    const limitsAt = async ({ operationsUrl }: Service) =>
      ((await ask(`${operationsUrl}/readyz`)).json as { limits: { shared: boolean } }).limits;
    await mongo.shut();
    const expectWhatItCan = async (service: ServiceProcess, at: number): Promise<void> => {
      const { value: read, ms: readMs } = await timed(() => ask(self(service), customer));
      expect([read.status, Number(read.headers.get('retry-after')) > 0]).toEqual([503, true]);
      expect(readMs).toBeLessThan(2_200);
      const { value: written, ms } = await timed(() => put(service, customer, `While it was away ${at}`));
      expect([written.status, written.headers.get('svc-read-pending')]).toEqual([200, 'true']);
      expect(ms).toBeLessThan(2_200);
      expect((await limited(service)).headers.get('ratelimit')).toContain('tokens-search');
      expect((await limitsAt(service)).shared).toBe(false);
      expect(service.stderr()).toContain('this instance counts requests on its own');
      expect((await ask(`${service.url}/applications`, customer)).status).toBe(503);
      const metrics = await ask(`${service.operationsUrl}/metrics`);
      expect(metrics.text).toContain('\ntenant_ledger_event_log_up 1\n');
    };
    await Promise.all(running.map(expectWhatItCan));
    const body = { name: 'While it was away', type: 'management', permissions: ['tenant:update'] };
    const made = await ask(`${running[0]!.url}/applications`, { method: 'POST', key: customer.key, body });
    expect([made.status, made.headers.get('svc-read-pending')]).toEqual([201, 'true']);
    expect((await put(running[1]!, { ...customer, key: made.json.key }, 'By its key')).status).toBe(200);
    expect((await put(running[2]!, customer, 'The last while it was away')).status).toBe(200);
    await mongo.open();
    for (const service of running)
      await until(async () => (await nameAt(service, customer)) === 'The last while it was away', 30_000);
    for (const { url } of running) {
      const shown = await ask(`${url}/applications/${made.json.id}`, customer);
      expect(shown.json).toMatchObject({ name: 'While it was away' });
    }
    for (const service of running)
      await until(
        async () => !(await put(service, customer, 'Back')).headers.has('svc-read-pending'),
        30_000,
      );
    await until(async () => {
      await limited(running[0]!);
      return (await limitsAt(running[0]!)).shared;
    }, 30_000);
  }, 180_000);
});
