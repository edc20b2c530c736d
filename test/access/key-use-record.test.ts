import * as fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import type { KeyAct } from '../../src/access/key-clients';
import {
  keyUseRecord,
  type KeyOfTenant,
  type KeyUseRecordDependencies,
} from '../../src/access/key-use-record';
import type { Client, ClientUse } from '../../src/domain/events';
import type { KeyUse } from '../../src/domain/key-use';
import { bytesOf, MAX_APPEND_BYTES, type NewEvent } from '../../src/event-log/event-log';
import { fault } from '../../src/fault';
import { TIMES } from '../../src/times';
import { until } from '../support/waiting';

const MINUTE = 60_000;
const DAY = '2026-01-31';
const NEXT_DAY = Date.parse('2026-02-01T00:00:00.000Z');
const CLIENT = { address: '192.0.2.1' };

const keyOf = (first: string, keyId: string = randomUUID()): KeyOfTenant => ({
  tenantId: `${first}${randomUUID().slice(8)}`,
  applicationId: randomUUID(),
  keyId,
});
const KEY = keyOf('00000000');

/** A record of which the test sets the time. It writes every few milliseconds. */
const given = (more: Partial<KeyUseRecordDependencies> = {}) => {
  let ms = Date.parse(`${DAY}T12:00:00.000Z`);
  const appended: { readonly tenantId: string; readonly events: readonly NewEvent[] }[] = [];
  const warnings: string[] = [];
  const record = keyUseRecord({
    append: async (tenantId, events) => appended.push({ tenantId, events }),
    warn: (what) => warnings.push(what),
    recordsClients: true,
    collectMs: 2,
    now: () => ms,
    ...more,
  });
  const uses = () => appended.flatMap(({ events }) => events.map(({ data }) => data as unknown as KeyUse));
  return {
    record,
    appended,
    warnings,
    uses,
    setTime: (time: number) => (ms = time),
    count: (act: KeyAct, key = KEY, client: Client = CLIENT) =>
      record.count(key, new Date(ms).toISOString(), act, client),
    untilUses: (number: number) => until(() => uses().length === number),
    /** Long enough for several rounds. */
    pass: () => new Promise((resolve) => setTimeout(resolve, 30)),
  };
};
const READ = { operation: 'getTenant' };
const REFUSED: KeyAct = { reason: 'revoked', key: KEY };
const lacks = (...permissions: readonly string[]): KeyAct => ({ reason: 'permission_missing', permissions });

describe('what a key did', () => {
  it('is recorded at its first use of the day, and the rest after the day', async () => {
    const { record, appended, uses, count, untilUses, setTime, pass } = given();
    count(READ);
    await untilUses(1);
    count(READ);
    setTime(Date.parse(`${DAY}T13:00:00.000Z`));
    count({ operation: 'listLogs' });
    count(READ);
    count({ eventsGivenOut: 70 });
    await pass();
    expect(uses()).toHaveLength(1);
    setTime(NEXT_DAY);
    await untilUses(2);
    const { tenantId: _, ...key } = KEY;
    const common = { ...key, date: DAY, refusals: {}, missingPermissions: [] };
    const noon = `${DAY}T12:00:00.000Z`;
    const one = `${DAY}T13:00:00.000Z`;
    expect(uses()).toEqual([
      { ...common, operations: { getTenant: 1 }, eventsGivenOut: 0, firstAt: noon, lastAt: noon },
      {
        ...common,
        operations: { getTenant: 2, listLogs: 1 },
        eventsGivenOut: 70,
        firstAt: noon,
        lastAt: one,
      },
    ]);
    expect(appended[1]!.events[0]!.metadata).toMatchObject({ at: one, client: CLIENT });
    await record.close();
    expect(uses()).toHaveLength(2);
  });

  it('names the Application as it was called last', async () => {
    const { record, appended, count, untilUses } = given();
    count(READ, { ...KEY, applicationName: 'Before' });
    await untilUses(1);
    count(READ, { ...KEY, applicationName: 'After' });
    count(REFUSED);
    await untilUses(2);
    const actor = { type: 'application', id: KEY.applicationId };
    expect(appended.map(({ events }) => events[0]!.metadata['actor'])).toEqual([
      { ...actor, name: 'Before' },
      { ...actor, name: 'After' },
    ]);
    await record.close();
  });

  it('is another event in each process', async () => {
    const both = [given(), given()];
    for (const { count } of both) count(READ);
    for (const { untilUses, record } of both) await untilUses(1).then(record.close);
    expect(new Set(both.map(({ appended }) => appended[0]!.events[0]!.id)).size).toBe(2);
  });

  it('is recorded in one append per tenant, each at its own time after midnight', async () => {
    const { record, appended, count, untilUses, setTime, pass } = given();
    const late = keyOf('001a8ce0'); // half an hour less a minute, in ms
    for (const key of [KEY, { ...KEY, keyId: randomUUID() }, late]) count(READ, key);
    await untilUses(3);
    for (const key of [KEY, { ...KEY, keyId: appended[0]!.events[1]!.data['keyId'] as string }, late])
      count(READ, key);
    setTime(NEXT_DAY);
    await untilUses(5);
    setTime(NEXT_DAY + 28 * MINUTE);
    await pass();
    expect(appended.slice(2).map(({ tenantId, events }) => [tenantId, events.length])).toEqual([
      [KEY.tenantId, 2],
    ]);
    setTime(NEXT_DAY + 30 * MINUTE);
    await untilUses(6);
    await record.close();
    expect(appended.at(-1)).toMatchObject({ tenantId: late.tenantId, events: [{}] });
  });

  it('is recorded at once where it was refused, once per reason and hour', async () => {
    const { record, uses, count, untilUses, setTime, pass } = given();
    count(REFUSED);
    await untilUses(1);
    count(REFUSED);
    await pass();
    expect(uses()).toHaveLength(1);
    count(lacks('tenant:read'));
    await untilUses(2);
    count(lacks('tenant:read'));
    count(lacks('log:read', 'tenant:read'));
    setTime(Date.parse(`${DAY}T13:00:00.000Z`));
    count(REFUSED);
    await untilUses(3);
    await record.close();
    expect(uses().map(({ refusals, missingPermissions }) => [refusals, missingPermissions])).toEqual([
      [{ revoked: 1 }, []],
      [{ revoked: 1, permission_missing: 1 }, ['tenant:read']],
      [{ revoked: 1, permission_missing: 2 }, ['tenant:read', 'log:read']],
    ]);
  });

  it('is recorded at a stop, which takes at most 3 s', async () => {
    const { record, uses, count, untilUses, pass } = given();
    count(READ);
    await untilUses(1);
    count(READ);
    await record.close();
    count(READ, { ...KEY, keyId: randomUUID() });
    await pass();
    expect(uses()).toHaveLength(2);

    expect(TIMES.lastMs).toBe(3_000);
    const hanging = given({ append: () => new Promise(() => undefined), closeMs: 200 });
    hanging.count(READ);
    await hanging.record.close();
    expect(hanging.warnings).toHaveLength(1);
  });

  it('is known exactly where it was counted, also before it is recorded', async () => {
    const { record, count, setTime, untilUses } = given();
    count(READ);
    await untilUses(1);
    expect(record.unwritten(KEY.tenantId, KEY.keyId)).toEqual([]);
    setTime(Date.parse(`${DAY}T13:00:00.000Z`));
    count(READ);
    expect(record.unwritten(KEY.tenantId, KEY.keyId)).toMatchObject([{ operations: { getTenant: 1 } }]);
    expect(record.lastUse(KEY.tenantId, KEY.keyId)).toBe(`${DAY}T13:00:00.000Z`);
    setTime(Date.parse(`${DAY}T14:00:00.000Z`));
    count(REFUSED);
    // One that arrived earlier may be counted later.
    record.count(KEY, `${DAY}T11:00:00.000Z`, READ, CLIENT);
    const span = { firstAt: `${DAY}T11:00:00.000Z`, lastAt: `${DAY}T14:00:00.000Z` };
    expect(record.unwritten(KEY.tenantId, KEY.keyId)).toMatchObject([span]);
    expect(record.lastUse(KEY.tenantId, KEY.keyId)).toBe(`${DAY}T13:00:00.000Z`);
    expect(record.lastUse(KEY.tenantId, randomUUID())).toBeUndefined();
    await record.close();
  });
});

describe('where a key was used from', () => {
  const EXPORT: KeyAct = { operation: 'listEvents', beginsStream: true };
  const at = (n: number): Client => ({ address: `198.51.100.${n}` });
  const clientsOf = ({ metadata }: NewEvent) => metadata['clients'] as readonly ClientUse[];
  const hour = (n: number) => Date.parse(`${DAY}T${n}:00:00.000Z`);
  const some = (number: number) => Array.from({ length: number }, (_, n) => n);

  it('is one entry per address with its last user agent, and what further ones did is added up', async () => {
    const { record, appended, count, untilUses, setTime } = given();
    count(READ, KEY, { ...at(0), userAgent: 'a/1' });
    await untilUses(1);
    for (const n of some(22)) count(READ, KEY, at(n));
    setTime(hour(13));
    count(REFUSED, KEY, { ...at(0), userAgent: 'b/1' });
    count({ eventsGivenOut: 5 }, KEY, { ...at(0), userAgent: 'b/1' });
    count(READ, KEY, at(30));
    // Another service says so, which is not the same as a connection from there.
    count(READ, KEY, { ...at(0), reportedBy: randomUUID() });
    await record.close();
    const noon = `${DAY}T12:00:00.000Z`;
    const one = `${DAY}T13:00:00.000Z`;
    const events = appended.flatMap((append) => append.events);
    expect(clientsOf(events[0]!)).toEqual([
      { ...at(0), userAgent: 'a/1', requests: 1, firstAt: noon, lastAt: noon },
    ]);
    expect(clientsOf(events[1]!)).toEqual([
      { ...at(0), userAgent: 'b/1', requests: 2, firstAt: noon, lastAt: one },
      ...some(19).map((n) => ({ ...at(n + 1), requests: 1, firstAt: noon, lastAt: noon })),
      { requests: 4, firstAt: noon, lastAt: one },
    ]);
  });

  it('is recorded at once at the first request from an address, and at the beginning of a stream', async () => {
    const { record, count, untilUses, setTime, pass } = given();
    count(READ, KEY, at(1));
    await untilUses(1);
    count(READ, KEY, at(2));
    await untilUses(2);
    count(EXPORT, KEY, at(2));
    await untilUses(3);
    for (const n of [1, 2]) count(READ, KEY, at(n));
    count(EXPORT, KEY, at(2));
    await pass();
    await untilUses(3);
    count({ operation: 'exportLogs', beginsStream: true }, KEY, at(2));
    await untilUses(4);
    count(EXPORT, KEY, at(1));
    await untilUses(5);
    setTime(hour(13));
    count(EXPORT, KEY, at(1));
    await untilUses(6);
    await record.close();
  });

  it('is recorded at once at most 20 times per key and hour, and 200 times per tenant', async () => {
    const { record, count, untilUses, setTime, pass, uses } = given();
    const keys = some(12).map(() => ({ ...KEY, keyId: randomUUID() }));
    for (const key of keys) count(READ, key);
    await untilUses(12);
    const [first, second] = keys as [KeyOfTenant, KeyOfTenant];
    const begin = async (key: KeyOfTenant, times: number, expected: number) => {
      const before = uses().length;
      for (const n of some(times)) {
        count({ operation: `export${n}`, beginsStream: true }, key);
        await untilUses(before + Math.min(n + 1, expected));
      }
      await pass();
      expect(uses()).toHaveLength(before + expected);
    };
    await begin(first, 22, 20);
    await begin(second, 2, 2);
    for (const key of keys.slice(2, 11)) await begin(key, 20, key === keys[10] ? 18 : 20);
    await begin(keys[11]!, 1, 0);
    // Those of another tenant, and refusals, do not count in it.
    await begin(keyOf('00000000'), 1, 1);
    count(REFUSED, keys[11]);
    await untilUses(12 + 200 + 2);
    setTime(hour(13));
    await begin(first, 1, 1);
    await record.close();
  });

  it('is not recorded where clients are not, but the beginning of a stream is', async () => {
    const { record, appended, count, untilUses, pass } = given({ recordsClients: false });
    count(READ, KEY, at(1));
    await untilUses(1);
    count(READ, KEY, at(2));
    await pass();
    await untilUses(1);
    count(EXPORT, KEY, at(2));
    await untilUses(2);
    await record.close();
    expect(JSON.stringify(appended)).not.toMatch(/198\.51|clients?"/);
  });

  it('is on record at once also if that of the first use could not be appended before', async () => {
    let isAway = true;
    const log: NewEvent[] = [];
    const append = async (_: string, events: readonly NewEvent[]) => {
      if (isAway) throw fault('log_unavailable', 'It is away.');
      log.push(...events);
    };
    const { record, count, warnings } = given({ append });
    count(READ);
    await until(() => warnings.length > 0);
    count(EXPORT);
    isAway = false;
    await until(() => log.length === 2);
    expect(log[1]!.data).toMatchObject({ operations: { listEvents: 1 } });
    await record.close();
  });

  it('takes as many appends as the log takes bytes, and memory for 50,000 addresses', async () => {
    const { record, appended, count } = given({ collectMs: 3_600_000, closeMs: 60_000 });
    const userAgent = '"'.repeat(256);
    for (const _ of some(2_600)) {
      const key = { ...KEY, keyId: randomUUID() };
      for (const n of some(20)) count(READ, key, { ...at(n), userAgent });
    }
    await record.close();
    const sizes = appended.map(({ events }) => events.reduce((sum, event) => sum + bytesOf(event), 0));
    expect(Math.max(...sizes)).toBeLessThan(MAX_APPEND_BYTES / 2);
    const events = appended.flatMap((append) => append.events);
    expect(events).toHaveLength(2_600);
    const entries = events.flatMap(clientsOf);
    expect(entries.filter(({ address }) => address !== undefined)).toHaveLength(50_000);
    expect(entries.reduce((sum, { requests }) => sum + requests, 0)).toBe(52_000);
  });
});

describe('a record that cannot be appended', () => {
  it('is appended again as it is, before what was counted meanwhile', async () => {
    let isAway = true;
    const tried: NewEvent[][] = [];
    const written: NewEvent[] = [];
    const append = async (_: string, events: readonly NewEvent[]) => {
      tried.push([...events]);
      if (isAway) throw fault('log_unavailable', 'It is away.');
      written.push(...events);
    };
    const { record, count, warnings } = given({ append });
    count(READ);
    await until(() => tried.length >= 2);
    expect(tried[1]).toEqual(tried[0]);
    for (let i = 0; i < 3; i += 1) count(READ);
    isAway = false;
    await record.close();
    expect(written[0]).toEqual(tried[0]![0]);
    expect(written[1]!.data).toMatchObject({ operations: { getTenant: 3 } });
    expect(warnings.length).toBeGreaterThan(0);
  });

  it('does not keep back that of other tenants, unless the log is away', async () => {
    const bad = keyOf('ffffffff');
    const written: string[] = [];
    const append = async (tenantId: string) => {
      if (tenantId === bad.tenantId) throw new Error('No.');
      written.push(tenantId);
    };
    const { record, count } = given({ append });
    const good = Array.from({ length: 30 }, () => keyOf('00000000'));
    for (const key of [bad, ...good]) count(READ, key);
    await record.close();
    expect(written.toSorted()).toEqual(good.map(({ tenantId }) => tenantId).toSorted());
  });

  it('of many tenants is appended as soon as the log is back', async () => {
    const written = new Set<string>();
    const append = async (tenantId: string) => {
      if (warnings.length === 0) throw fault('log_unavailable', 'It is away.');
      written.add(tenantId);
    };
    const { record, count, warnings } = given({ append });
    for (let n = 0; n < 30; n += 1) count(READ, keyOf('00000000'));
    await until(() => written.size === 30);
    await record.close();
  });
});

it('nothing is lost or counted twice, whichever appends fail, and whether or not they were made', async () => {
  const acts = fc.array(fc.constantFrom<KeyAct | 'pause'>(READ, REFUSED, { eventsGivenOut: 3 }, 'pause'), {
    maxLength: 30,
  });
  const outcomes = fc.infiniteStream(fc.constantFrom('made', 'failed', 'made but failed'));
  await fc.assert(
    fc.asyncProperty(acts, outcomes, async (all, outcome) => {
      const log = new Map<string, KeyUse>();
      let isStopping = false;
      const append = async (_: string, events: readonly NewEvent[]) => {
        const { value } = outcome.next();
        if (value !== 'failed' || isStopping)
          for (const { id, data } of events) log.set(id, (log.get(id) ?? data) as unknown as KeyUse);
        if (value !== 'made' && !isStopping) throw fault('outcome_unknown', 'Who knows?');
      };
      const { record, count, pass } = given({ append, collectMs: 1 });
      for (const act of all)
        if (act === 'pause') await pass();
        else count(act);
      isStopping = true;
      await record.close();
      const sum = (of: (use: KeyUse) => number | undefined) =>
        [...log.values()].reduce((total, use) => total + (of(use) ?? 0), 0);
      const times = (act: KeyAct) => all.filter((one) => one === act).length;
      expect(sum(({ operations }) => operations['getTenant'])).toBe(times(READ));
      expect(sum(({ refusals }) => refusals.revoked)).toBe(times(REFUSED));
      expect(sum(({ eventsGivenOut }) => eventsGivenOut)).toBe(
        all.filter((act) => typeof act === 'object' && 'eventsGivenOut' in act).length * 3,
      );
    }),
    { numRuns: 20 },
  );
});

it('memory is bounded: by 5,000 keys of a tenant and 20,000 in all, and a warning says what was not counted', async () => {
  const { record, count, uses, warnings } = given({ collectMs: 3_600_000 });
  const tenants = Array.from({ length: 5 }, (_, n) => keyOf(`0000000${n}`));
  for (const tenant of tenants)
    for (let n = 0; n < 5_001; n += 1) count(READ, { ...tenant, keyId: randomUUID() });
  await record.close();
  const perTenant = tenants.map(
    ({ applicationId }) => uses().filter((use) => use.applicationId === applicationId).length,
  );
  expect(perTenant).toEqual([5_000, 5_000, 5_000, 5_000, 0]);
  expect(warnings).toHaveLength(4 + 5_001);
});

it('memory has room again for the keys and addresses of the next day', async () => {
  const { record, appended, count, setTime, untilUses, warnings } = given();
  for (const day of [1, 2]) {
    for (let n = 0; n < 3_000; n += 1) {
      const key = n === 0 ? KEY : { ...KEY, keyId: randomUUID() };
      for (let from = 0; from < 15; from += 1) count(READ, key, { address: `192.0.2.${from}` });
    }
    await untilUses(day * 3_000);
    const last = appended.at(-1)?.events.at(-1)?.metadata['clients'];
    expect(last).toHaveLength(15);
    setTime(NEXT_DAY + (day - 1) * 24 * 60 * MINUTE);
    await until(() => record.lastUse(KEY.tenantId, KEY.keyId) === undefined);
  }
  await record.close();
  expect(warnings).toEqual([]);
});
