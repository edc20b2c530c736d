import { randomUUID } from 'node:crypto';
import type { Reader } from '../../projections/projector';
import { keyUseRecord, type KeyUseRecordDependencies } from '../../src/access/key-use-record';
import type { App } from '../../src/app/app';
import { operatorRequest } from '../../src/app/operator';
import { createTenant } from '../../src/domain/tenant';
import type { EventLog, LoggedEvent } from '../../src/event-log/event-log';
import { fault } from '../../src/fault';
import { eventsOf } from '../support/events';
import { freshFolder } from '../support/folders';
import { OWNER } from '../support/given';
import { openAppIn } from '../support/profile';
import { until } from '../support/waiting';

const APPLICATION = randomUUID();
const FACT = { type: 'TokenRead', data: { entityId: 't' }, metadata: { version: 1 } };
const opened: App[] = [];
afterEach(async () => {
  for (const app of opened.splice(0)) await app.close();
});

/** A process on the stores of a folder. */
const processIn = async (folder: string) => {
  const app = await openAppIn(folder);
  opened.push(app);
  await app.projecting.start();
  const { streams, keyUses } = app;
  const newTenant = async (): Promise<string> => {
    const tenantId = randomUUID();
    const decide = createTenant({ name: 'A', ownerId: OWNER, includedMonthlyActiveTokens: 0 });
    const request = operatorRequest(tenantId, OWNER, 20_000);
    const { position } = await app.ledger.execute({ ...request, decide });
    await until(() => app.projecting.reached(position, 0), 20_000);
    return tenantId;
  };
  /** Stored as soon as the process ends. */
  const used = (tenantId: string, keyId: string, at: string, operation = 'listLogs'): void =>
    keyUses.used({
      tenantId,
      applicationId: APPLICATION,
      keyId,
      at,
      address: '192.0.2.1',
      what: { operation },
    });
  const events = (tenantId: string): Promise<readonly LoggedEvent[]> =>
    eventsOf(app.log.readStream(streams.activity(tenantId)));
  const projected = async (): Promise<void> => {
    const head = await app.log.head();
    await until(() => app.projecting.reached(head?.position ?? '', 0), 20_000);
  };
  const recordAt = (now: string, more: Partial<KeyUseRecordDependencies> = {}) => {
    const warnings: unknown[] = [];
    const logs = () => app.projecting.reader('logs');
    const warn = (what: string, error: unknown) => warnings.push([what, (error as Error).message]);
    const record = keyUseRecord({ keyUses, log: app.log, streams, logs, warn, now: () => now, ...more });
    return { ...record, warnings };
  };
  const end = async (): Promise<void> => {
    opened.splice(opened.indexOf(app), 1);
    await app.close();
  };
  return { app, newTenant, used, events, projected, recordAt, end };
};

type Process = Awaited<ReturnType<typeof processIn>>;

/** Another process, after one has ended in which these keys were used. */
const afterUse = async (use: (one: Process, tenantId: string) => void) => {
  const folder = freshFolder();
  const one = await processIn(folder);
  const tenantId = await one.newTenant();
  use(one, tenantId);
  await one.end();
  return { folder, tenantId, process: await processIn(folder) };
};

const pendingIn = ({ app }: Process) => app.keyUses.daysBefore('9999', 1_000);

const dataOf = (events: readonly LoggedEvent[]) =>
  events.map(({ data }) => data as { date: string; keyId: string; operations: Record<string, number> });

describe('the record of what keys were used for', () => {
  it('does not depend on how far the read models are', async () => {
    const { tenantId, process } = await afterUse(({ used }, tenant) =>
      used(tenant, randomUUID(), '2026-01-31T08:00:00.000Z'),
    );
    const logs = () => ({ get: async () => undefined }) as unknown as Reader;
    await process.recordAt('2026-02-01T00:05:00.000Z', { logs }).sumUp();
    expect(await process.events(tenantId)).toHaveLength(1);
  });

  it('is one event per key and day, once the day has ended for every clock', async () => {
    const keyId = randomUUID();
    const { tenantId, process } = await afterUse(({ used }, tenant) => {
      used(tenant, keyId, '2026-01-31T08:00:00.000Z');
      used(tenant, keyId, '2026-01-31T23:59:59.999Z', 'getTenant');
      used(tenant, keyId, '2026-02-01T00:00:00.000Z');
    });
    for (const now of ['2026-01-31T23:59:59.999Z', '2026-02-01T00:04:59.999Z'])
      await process.recordAt(now).sumUp();
    expect(await process.events(tenantId)).toEqual([]);
    for (let times = 0; times < 3; times += 1) await process.recordAt('2026-02-01T00:05:00.000Z').sumUp();
    const [event, ...more] = await process.events(tenantId);
    expect(more).toEqual([]);
    expect(event).toMatchObject({
      type: 'KeyUsed',
      data: {
        applicationId: APPLICATION,
        keyId,
        date: '2026-01-31',
        operations: { listLogs: 1, getTenant: 1 },
        failed: 0,
        eventsGivenOut: 0,
        firstAt: '2026-01-31T08:00:00.000Z',
        lastAt: '2026-01-31T23:59:59.999Z',
      },
      metadata: {
        version: 1,
        at: '2026-01-31T23:59:59.999Z',
        keyId,
        actor: { type: 'application', id: APPLICATION },
        client: { address: '192.0.2.1' },
      },
    });
    expect((await pendingIn(process)).map(({ date }) => date)).toEqual(['2026-02-01']);
  });

  it('is made while a process runs past midnight', async () => {
    const { tenantId, process } = await afterUse(({ used }, tenant) => {
      for (const day of ['30', '31']) used(tenant, randomUUID(), `2026-01-${day}T12:00:00.000Z`);
    });
    let now = '2026-01-31T23:59:00.000Z';
    const record = process.recordAt('', { now: () => now, everyMs: 20 });
    record.start();
    const dates = async () => dataOf(await process.events(tenantId)).map(({ date }) => date);
    await until(async () => (await dates()).length === 1);
    now = '2026-02-01T00:05:00.000Z';
    await until(async () => (await dates()).length === 2);
    await record.close();
    expect(await dates()).toEqual(['2026-01-30', '2026-01-31']);
  });

  it('of days on which no process ran at their end is made up for', async () => {
    const { tenantId, process } = await afterUse(({ used }, tenant) => {
      for (const day of ['05', '06', '08'])
        for (const keyId of ['a', 'b'])
          used(tenant, `${keyId.repeat(8)}-0000-4000-8000-000000000000`, `2026-01-${day}T12:00:00.000Z`);
    });
    await process.recordAt('2026-02-20T12:00:00.000Z').sumUp();
    expect(dataOf(await process.events(tenantId)).map(({ date, keyId }) => `${date} ${keyId[0]}`)).toEqual([
      '2026-01-05 a',
      '2026-01-05 b',
      '2026-01-06 a',
      '2026-01-06 b',
      '2026-01-08 a',
      '2026-01-08 b',
    ]);
    expect(await pendingIn(process)).toEqual([]);
  });

  it('is written once by several processes at the same time, beside other writers', async () => {
    const tenants: string[] = [];
    const keys = Array.from({ length: 40 }, () => randomUUID());
    const folder = freshFolder();
    const first = await processIn(folder);
    for (let i = 0; i < 3; i += 1) tenants.push(await first.newTenant());
    for (const tenant of tenants) for (const key of keys) first.used(tenant, key, '2026-01-31T12:00:00.000Z');
    await first.end();
    const processes = [await processIn(folder), await processIn(folder), await processIn(folder)];
    const { log, streams } = processes[0]!.app;
    const others = tenants.map(async (tenant) => {
      for (let end = -1; end < 20; end += 1)
        await log
          .append(streams.activity(tenant), [{ ...FACT, id: randomUUID() }], end < 0 ? 'no_stream' : end)
          .catch(() => undefined);
    });
    const records = processes.map((one) => one.recordAt('2026-02-01T12:00:00.000Z'));
    await Promise.all([...records.map((record) => record.sumUp()), ...others]);
    expect(records.flatMap(({ warnings }) => warnings)).toEqual([]);
    for (const tenant of tenants) {
      const uses = (await processes[0]!.events(tenant)).filter(({ type }) => type === 'KeyUsed');
      expect(
        dataOf(uses)
          .map(({ keyId }) => keyId)
          .toSorted(),
      ).toEqual(keys.toSorted());
    }
    expect(await pendingIn(processes[0]!)).toEqual([]);
  });

  it.each(['shows it', 'is far behind'])(
    'is not repeated after a crash before the removal, when the read model %s',
    async (isShown) => {
      const { folder, tenantId, process } = await afterUse(({ used }, tenant) =>
        used(tenant, randomUUID(), '2026-01-31T12:00:00.000Z'),
      );
      const { log, streams, keyUses } = process.app;
      await log.append(streams.activity(tenantId), [{ ...FACT, id: randomUUID() }], 'no_stream');
      const remove = async (): Promise<never> => {
        throw new Error('killed');
      };
      const crashing = process.recordAt('2026-02-01T12:00:00.000Z', { keyUses: { ...keyUses, remove } });
      await crashing.sumUp();
      expect(crashing.warnings).toHaveLength(1);
      expect(await process.events(tenantId)).toHaveLength(2);

      const other = await processIn(folder);
      await other.projected();
      const reader = other.app.projecting.reader('logs');
      const behind: Reader = {
        ...reader,
        get: async (tenant, collection, key) =>
          collection === 'rows' || key === 'activity' ? undefined : reader.get(tenant, collection, key),
      };
      const logs = () => (isShown === 'shows it' ? reader : behind);
      const record = other.recordAt('2026-02-01T12:00:00.000Z', { logs });
      await record.sumUp();
      expect(await other.events(tenantId)).toHaveLength(2);
      expect([record.warnings, await pendingIn(other)]).toEqual([[], []]);
    },
  );

  it('waits for a log that is away at midnight', async () => {
    const { tenantId, process } = await afterUse(({ used }, tenant) =>
      used(tenant, randomUUID(), '2026-01-31T12:00:00.000Z'),
    );
    const append = async (): Promise<never> => {
      throw fault('log_unavailable', 'The log is away.');
    };
    const away = process.recordAt('2026-02-01T00:05:00.000Z', { log: { ...process.app.log, append } });
    await away.sumUp();
    expect(away.warnings).toEqual([[expect.stringContaining(tenantId), 'The log is away.']]);
    expect(await pendingIn(process)).toHaveLength(1);
    await process.recordAt('2026-02-01T00:10:00.000Z').sumUp();
    expect(await process.events(tenantId)).toHaveLength(1);
    expect(await pendingIn(process)).toEqual([]);
  });

  it('of a tenant that cannot be recorded does not hold up the others', async () => {
    const folder = freshFolder();
    const one = await processIn(folder);
    const tenants = (await Promise.all([one.newTenant(), one.newTenant()])).toSorted() as [string, string];
    for (const tenant of tenants) one.used(tenant, randomUUID(), '2026-01-31T12:00:00.000Z');
    await one.end();
    const process = await processIn(folder);
    const append: EventLog['append'] = async (stream, ...more) => {
      if (stream.includes(tenants[0])) throw fault('history_missing', 'The stream was removed.');
      return process.app.log.append(stream, ...more);
    };
    const record = process.recordAt('2026-02-01T12:00:00.000Z', { log: { ...process.app.log, append } });
    await record.sumUp();
    expect(record.warnings).toHaveLength(1);
    expect((await pendingIn(process)).map(({ tenantId }) => tenantId)).toEqual([tenants[0]]);
    expect(await process.events(tenants[1])).toHaveLength(1);
  });

  it('does not reach a log that does not know the tenant', async () => {
    const unknown = randomUUID();
    const { process } = await afterUse(({ used }) => used(unknown, randomUUID(), '2026-01-31T12:00:00.000Z'));
    await process.recordAt('2026-02-01T12:00:00.000Z').sumUp();
    expect(await process.events(unknown)).toEqual([]);
    expect(await pendingIn(process)).toEqual([]);
  });
});
