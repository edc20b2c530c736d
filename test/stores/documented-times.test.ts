import { randomUUID } from 'node:crypto';
import { addKey, revokeKey } from '../../src/domain/application-keys';
import { updateApplication } from '../../src/domain/applications';
import { deleteTenant, type Decide } from '../../src/domain/tenant';
import { newKey } from '../../src/ledger/api-key';
import { readPolicies } from '../../src/limits/policies';
import { mongoLimiter, rateLimits } from '../../src/limits/rate-limits';
import { TIMES } from '../../src/times';
import { besideForTests, type NewTenant } from '../support/beside';
import { following } from '../support/following';
import { ask } from '../support/http';
import { isolatedTenants } from '../support/isolated-tenants';
import { connectMongodb, mongodbBehindProxy, type DisturbedMongodb } from '../support/mongodb-under-test';
import { describeMongodb } from '../support/mongodb/databases';
import { serviceForTests, startService } from '../support/service';
import { timed, until } from '../support/waiting';

/** For the requests and timers of the test itself. */
const SLACK_MS = 200;

const msOf = async (work: () => Promise<unknown>): Promise<number> => (await timed(work)).ms;

describe('a followed stream', () => {
  const service = serviceForTests();
  const by = besideForTests(service);
  const opened = async ({ key }: Pick<NewTenant, 'key'>, seen: string) => {
    const stream = await following(`${service.url}/events?follow=true`, key);
    await until(() => stream.text().includes(seen));
    return stream;
  };
  const aReader = () => by.newTenant('Acme', ['log:read']);

  const endings: readonly [string, (reader: NewTenant) => Decide][] = [
    ['key was revoked', ({ keyId }) => revokeKey(keyId)],
    ['key lost the permission', ({ id }) => updateApplication(id, { permissions: ['tenant:read'] })],
    ['tenant was deleted', () => deleteTenant()],
  ];
  it.each(endings)('ends within a second after its %s', async (_, ending) => {
    const reader = await aReader();
    const stream = await opened(reader, 'KeyAdded');
    await by.write(reader.tenantId, ending(reader));
    expect(await msOf(() => until(stream.isOver))).toBeLessThan(1_000 + SLACK_MS);
  });

  it('ends within a second after its key has expired', async () => {
    const { tenantId, id } = await aReader();
    const expiresAt = new Date(Date.now() + 1_000).toISOString();
    const { key, input } = newKey(tenantId, { expiresAt });
    await by.write(tenantId, addKey(id, input));
    const stream = await opened({ key }, input.keyId);
    await until(stream.isOver);
    expect(Date.now() - Date.parse(expiresAt)).toBeLessThan(1_000 + SLACK_MS);
  });

  it('has what another process appended within 100 ms', async () => {
    const reader = await aReader();
    const stream = await opened(reader, 'KeyAdded');
    for (let round = 0; round < 5; round += 1) {
      const { input } = newKey(reader.tenantId);
      await by.write(reader.tenantId, addKey(reader.id, input));
      expect(await msOf(() => until(() => stream.text().includes(input.keyId)))).toBeLessThan(100 + SLACK_MS);
    }
    await stream.stop();
  });
});

describe('a refusal', () => {
  it('takes about as long for an unknown, an expired, a revoked key and one of a deleted tenant', async () => {
    const { folder, url } = await startService();
    const newIsolated = await isolatedTenants(folder);
    const [there, deleted] = [await newIsolated(), await newIsolated()];
    const manager = ({ callers }: typeof there) =>
      callers.find(({ type, held }) => type === 'management' && held.length > 1)!.keys;
    const statusOf = async (key: string, method = 'GET') =>
      (await ask(`${url}/tenants/self`, { key, method })).status;
    expect(await statusOf(manager(deleted).valid.key, 'DELETE')).toBe(204);
    const keys = [
      newKey(there.id).key,
      newKey(randomUUID()).key,
      manager(there).expired.key,
      manager(there).revoked.key,
      manager(deleted).valid.key,
    ];
    const times = keys.map(() => [] as number[]);
    for (let round = 0; round < 40; round += 1)
      for (const [i, key] of keys.entries())
        times[i]!.push(await msOf(async () => expect(await statusOf(key)).toBe(401)));
    const medians = times.map((all) => all.toSorted((a, b) => a - b)[20]!);
    expect(Math.max(...medians)).toBeLessThan(3 * Math.min(...medians) + 1);
  });
});

describeMongodb('a request whose rate counters do not answer', () => {
  const losses: readonly [string, (server: DisturbedMongodb) => Promise<void> | void][] = [
    ['down', (server) => server.shut()],
    ['frozen', (server) => server.freeze()],
  ];
  it.each(losses)('waits at most 200 ms for a server that is %s', async (_, lose) => {
    expect(TIMES.sharedCountersMs).toBe(200);
    const server = await mongodbBehindProxy();
    const shared = await mongoLimiter((await connectMongodb(server.url)).db);
    const { sharedCountersMs: sharedWithinMs, awayMs: shownAloneMs } = TIMES;
    const options = { shared, sharedWithinMs, shownAloneMs, report: () => undefined };
    const { count, status } = rateLimits(readPolicies('global=1000/60/60')!, options);
    await count('GET', '/', '192.0.2.1');
    await lose(server);
    expect(await msOf(() => count('GET', '/', '192.0.2.1'))).toBeLessThan(200 + SLACK_MS);
    expect(status()).toMatchObject({ shared: false, counted_alone: 1 });
    server.thaw();
  });
});
