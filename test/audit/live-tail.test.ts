import { randomUUID } from 'node:crypto';
import { liveTail } from '../../src/audit/live-tail';
import { pause } from '../../src/async/clock';
import type { EventLog, ReadFrom } from '../../src/event-log/event-log';
import type { LedgerLog } from '../../src/event-log/ledger-log';
import { anEvent } from '../support/events';
import { freshFolder } from '../support/folders';
import { openLogIn } from '../support/profile';
import { until } from '../support/waiting';

const FOLLOWERS = 200;

describe('the live tail of an instance', () => {
  let ledgerLog: LedgerLog;
  let subscriptions = { begun: 0, open: 0 };
  let reads = 0;
  beforeAll(async () => (ledgerLog = await openLogIn(freshFolder())));
  beforeEach(() => (subscriptions = { begun: 0, open: 0 }));
  afterAll(() => ledgerLog.log.close());

  /** The log, counting its subscriptions; each can be made to fail. */
  const counted = (
    failure: () => Error | undefined = () => undefined,
  ): Pick<EventLog, 'head' | 'readAll' | 'readTenant'> => ({
    head: () => ledgerLog.log.head(),
    readTenant: (tenantId, from) => {
      reads += 1;
      return ledgerLog.log.readTenant(tenantId, from);
    },
    readAll: async function* (from: ReadFrom = {}) {
      subscriptions.begun += 1;
      subscriptions.open += 1;
      try {
        const error = failure();
        if (error !== undefined) throw error;
        yield* ledgerLog.log.readAll(from);
      } finally {
        subscriptions.open -= 1;
      }
    },
  });
  const never = new AbortController().signal;
  const append = (tenantId: string) =>
    ledgerLog.log.append(ledgerLog.streams.activity(tenantId), [anEvent()], 'no_stream');

  it('subscribes to the log once, however many followers and tenants there are, and stops with the last', async () => {
    const tail = liveTail(counted(), ledgerLog.streams);
    const tenants = Array.from({ length: 20 }, () => randomUUID());
    const follow = (_: unknown, at: number) => tail.follow(tenants[at % tenants.length] ?? '');
    const followers = await Promise.all(Array.from({ length: FOLLOWERS }, follow));
    await until(() => subscriptions.open === 1);
    const [tenantId = ''] = tenants;
    await append(tenantId);
    const own = followers.filter((_, at) => at % tenants.length === 0);
    await Promise.all(own.map((follower) => follower.wait(0, never)));
    expect(followers.map((follower) => follower.changes())).toEqual(
      followers.map((_, at) => (at % tenants.length === 0 ? 1 : 0)),
    );
    expect(subscriptions).toEqual({ begun: 1, open: 1 });
    for (const follower of followers.slice(1)) follower.stop();
    expect(subscriptions).toEqual({ begun: 1, open: 1 });
    followers[0]?.stop();
    await until(() => subscriptions.open === 0);
    const again = await tail.follow(tenantId);
    await until(() => subscriptions.begun === 2);
    again.stop();
    await until(() => subscriptions.open === 0);
  });

  it('reads new events once for all followers of the tenant, and again after the next change', async () => {
    const tail = liveTail(counted(), ledgerLog.streams);
    const tenantId = randomUUID();
    const followers = await Promise.all(Array.from({ length: 20 }, () => tail.follow(tenantId)));
    const idsRead = async (after: string | undefined) => {
      const read = await Promise.all(followers.map((follower) => follower.read(after)));
      return new Set(read.map((events) => events.map(({ id }) => id).join()));
    };
    const woken = (seen: number) => until(() => followers.every((follower) => follower.changes() > seen));
    const [one, two] = [anEvent(), anEvent()];
    reads = 0;
    const { position } = await ledgerLog.log.append(ledgerLog.streams.activity(tenantId), [one], 'no_stream');
    await woken(0);
    expect(await idsRead(undefined)).toEqual(new Set([one.id]));
    expect(await idsRead(position)).toEqual(new Set(['']));
    expect(reads).toBe(2);
    await ledgerLog.log.append(ledgerLog.streams.activity(tenantId), [two], 0);
    await woken(1);
    expect(await idsRead(position)).toEqual(new Set([two.id]));
    expect(reads).toBe(3);
    for (const follower of followers) follower.stop();
    await until(() => subscriptions.open === 0);
  });

  it('wakes all followers when its subscription fails, and continues once it can subscribe again', async () => {
    let failures = 1;
    const failure = () => (failures-- > 0 ? new Error('The store is away.') : undefined);
    const tail = liveTail(counted(failure), ledgerLog.streams);
    const tenantId = randomUUID();
    const follower = await tail.follow(tenantId);
    await follower.wait(0, never);
    const seen = follower.changes();
    expect(seen).toBeGreaterThan(0);
    await append(tenantId);
    await follower.wait(seen, never);
    expect(follower.changes()).toBeGreaterThan(seen);
    expect(subscriptions).toEqual({ begun: 2, open: 1 });
    follower.stop();
    await until(() => subscriptions.open === 0);
  });

  it('does not spin if a read ends on its own, as it does when the log is closed', async () => {
    let follows = 0;
    const ending = {
      head: async () => undefined,
      readTenant: (tenantId: string) => ledgerLog.log.readTenant(tenantId),
      readAll: async function* () {
        // Without a bound this test could not fail: the event loop would never turn again.
        if ((follows += 1) > 1_000) await new Promise(() => undefined);
        yield [];
      },
    };
    const follower = await liveTail(ending, ledgerLog.streams).follow(randomUUID());
    await pause(100);
    follower.stop();
    expect(follows).toBe(1);
  });
});
