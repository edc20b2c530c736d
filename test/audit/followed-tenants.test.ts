import { randomUUID } from 'node:crypto';
import { followedTenants } from '../../src/audit/followed-tenants';
import type { EventLog, ReadFrom } from '../../src/event-log/event-log';
import type { LedgerLog } from '../../src/event-log/streams';
import { fault } from '../../src/fault';
import { anEvent } from '../support/events';
import { freshFolder } from '../support/folders';
import { openLogIn } from '../support/profile';
import { deferred, until } from '../support/waiting';

const FOLLOWERS = 200;

describe('those who follow tenants', () => {
  let opened: LedgerLog;
  let subscriptions = { begun: 0, open: 0 };
  const open: { readonly stop: () => void; readonly ended: Promise<void> }[] = [];
  beforeAll(async () => (opened = await openLogIn(freshFolder())));
  beforeEach(() => (subscriptions = { begun: 0, open: 0 }));
  afterEach(async () => {
    for (const { stop } of open) stop();
    await Promise.allSettled(open.splice(0).map(({ ended }) => ended));
    await until(() => subscriptions.open === 0);
  });
  afterAll(() => opened.log.close());

  /** The log, counting its subscriptions; each can be made to fail. */
  const counted = (around: Partial<EventLog> = {}, failure: () => Error | undefined = () => undefined) => ({
    streams: opened.streams,
    log: {
      ...opened.log,
      readAll: async function* (from: ReadFrom = {}) {
        subscriptions.begun += 1;
        subscriptions.open += 1;
        try {
          const error = failure();
          if (error !== undefined) throw error;
          yield* opened.log.readAll(from);
        } finally {
          subscriptions.open -= 1;
        }
      },
      ...around,
    },
  });
  const following = (ledgerLog: LedgerLog, tenantId: string, follow = followedTenants(ledgerLog)) => {
    const ids: string[] = [];
    let batches = 0;
    const own = new AbortController();
    const ended = (async () => {
      for await (const batch of follow(ledgerLog, tenantId, { signal: own.signal })) {
        batches += 1;
        ids.push(...batch.map(({ id }) => id));
      }
    })();
    open.push({ stop: () => own.abort(), ended });
    return { ids, ended, batches: () => batches, stop: () => own.abort() };
  };
  const append = async (tenantId: string): Promise<string> => {
    const event = anEvent();
    const stream = opened.streams.activity(tenantId);
    const head = (await opened.log.head())?.position ?? '';
    const revision = await opened.log.revisionAt(stream, head);
    await opened.log.append(stream, [event], revision < 0 ? 'no_stream' : revision);
    return event.id;
  };

  it('subscribe to the log once, however many they are, and no longer than they follow', async () => {
    const ledgerLog = counted();
    const follow = followedTenants(ledgerLog);
    const tenants = Array.from({ length: 20 }, () => randomUUID());
    const followers = Array.from({ length: FOLLOWERS }, (_, at) =>
      following(ledgerLog, tenants[at % tenants.length] ?? '', follow),
    );
    await until(() => subscriptions.open === 1);
    const id = await append(tenants[0] ?? '');
    const own = followers.filter((_, at) => at % tenants.length === 0);
    await until(() => own.every(({ ids }) => ids.includes(id)));
    expect(followers.flatMap(({ ids }) => ids)).toEqual(own.map(() => id));
    for (const follower of followers.slice(1)) follower.stop();
    await Promise.all(followers.slice(1).map(({ ended }) => ended));
    expect(subscriptions).toEqual({ begun: 1, open: 1 });
    followers[0]?.stop();
    await until(() => subscriptions.open === 0);
    following(ledgerLog, tenants[0] ?? '', follow);
    await until(() => subscriptions.begun === 2);
  });

  it('get every event once and in order, whenever it is appended', async () => {
    const tenantId = randomUUID();
    const appended: string[] = [await append(tenantId)];
    const heads: (() => void)[] = [];
    const head = async () => {
      await new Promise<void>((resolve) => heads.push(resolve));
      return opened.log.head();
    };
    const follower = following(counted({ head }), tenantId);
    await until(() => follower.ids.length === 1);
    appended.push(await append(tenantId));
    heads.forEach((answer) => answer());
    await until(() => follower.ids.length === 2);
    for (let n = 0; n < 20; n += 1) appended.push(await append(tenantId));
    await until(() => follower.ids.length >= appended.length);
    expect(follower.ids).toEqual(appended);
  });

  it('get what was appended, and reported, while they read what was there', async () => {
    const tenantId = randomUUID();
    await append(tenantId);
    const reported = deferred();
    let reads = 0;
    const readTenant = async function* (...given: Parameters<EventLog['readTenant']>) {
      yield* opened.log.readTenant(...given);
      if (++reads !== 2) return;
      await append(tenantId);
      await reported.promise;
    };
    const readAll = async function* (from: ReadFrom = {}) {
      for await (const batch of opened.log.readAll(from)) {
        yield batch;
        reported.resolve();
      }
    };
    const follower = following(counted({ readTenant, readAll }), tenantId);
    await until(() => follower.ids.length === 2);
  });

  it('go on when the subscription fails, and get the error if the tenant cannot be read', async () => {
    let failures = 1;
    const failure = () => (failures-- > 0 ? new Error('The store is away.') : undefined);
    const tenantId = randomUUID();
    const follower = following(counted({}, failure), tenantId);
    await until(() => subscriptions.begun === 1);
    const first = await append(tenantId);
    await until(() => follower.ids.includes(first));
    await until(() => subscriptions.begun === 2);
    const second = await append(tenantId);
    await until(() => follower.ids.includes(second));
    expect(subscriptions).toEqual({ begun: 2, open: 1 });
    const away = (): never => {
      throw fault('log_unavailable', 'It is away.');
    };
    await expect(following(counted({ readTenant: away }), tenantId).ended).rejects.toMatchObject({
      code: 'log_unavailable',
    });
  });
});
