import { randomUUID } from 'node:crypto';
import {
  accessRecord,
  type AccessRecordDependencies,
  type RefusedAccess,
} from '../../src/access/access-record';
import type { AccessEvent } from '../../src/domain/access';
import { yieldToEventLoop } from '../../src/async/clock';
import { fault } from '../../src/fault';
import { encode } from '../../src/event-log/codec';
import type { NewEvent } from '../../src/event-log/event-log';
import { deferred, until } from '../support/waiting';

const TENANT = randomUUID();
const PERIOD_MS = 50;
const time = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();

const refused = (more: Partial<RefusedAccess> = {}): RefusedAccess => ({
  tenantId: TENANT,
  applicationId: randomUUID(),
  keyId: randomUUID(),
  fault: 'revoked',
  address: '192.0.2.1',
  at: time(0),
  ...more,
});

const given = (more: Partial<AccessRecordDependencies> = {}) => {
  const appended: { tenantId: string; events: readonly NewEvent[] }[] = [];
  const warnings: string[] = [];
  const record = accessRecord({
    append: async (tenantId, events) => void appended.push({ tenantId, events }),
    warn: (what) => warnings.push(what),
    recordsClients: true,
    ...more,
  });
  const facts = (): readonly AccessEvent['data'][] =>
    appended.flatMap(({ events }) => events.map(({ data }) => data as unknown as AccessEvent['data']));
  return { record, appended, warnings, facts };
};

describe('the record of refused access', () => {
  it('counts addresses, but names none if clients are not recorded', async () => {
    const { record, facts } = given({ recordsClients: false });
    const refusal = refused();
    for (const address of ['192.0.2.1', '192.0.2.2']) record.refused({ ...refusal, address });
    await record.close();
    expect(facts()).toEqual([
      expect.objectContaining({ count: 2, addressCount: 2, addresses: ['not recorded'] }),
    ]);
  });

  it('spans the requests of a key, in whatever order they were refused', async () => {
    const { record, facts } = given();
    const refusal = refused();
    for (const second of [5, 3, 9, 7]) record.refused({ ...refusal, at: time(second) });
    await record.close();
    expect(facts()).toEqual([expect.objectContaining({ firstAt: time(3), lastAt: time(9) })]);
  });

  it('is one fact for any number of refusals of a key', async () => {
    const { record, facts, appended } = given();
    const refusal = refused({ fault: 'permission_missing' });
    for (let i = 0; i < 10_000; i += 1)
      record.refused({
        ...refusal,
        permissions: [i % 2 === 0 ? 'tenant:read' : 'tenant:update'],
        fault: i === 7 ? 'expired' : 'permission_missing',
        address: `192.0.2.${i % 7}`,
        at: time(i % 60),
      });
    await record.close();
    expect(facts()).toEqual([
      {
        applicationId: refusal.applicationId,
        keyId: refusal.keyId,
        faults: ['permission_missing', 'expired'],
        permissions: ['tenant:read', 'tenant:update'],
        count: 10_000,
        addressCount: 7,
        addresses: ['192.0.2.0', '192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4'],
        firstAt: time(0),
        lastAt: time(59),
      },
    ]);
    const [event] = appended[0]!.events;
    expect(() => encode({ type: 'AccessRefused', data: facts()[0]! }, { at: time(0) })).not.toThrow();
    expect(event?.metadata).toEqual({
      actor: { type: 'application', id: refusal.applicationId },
      keyId: refusal.keyId,
      at: time(59),
      version: 1,
    });
  });

  it('is written at the end of each period', async () => {
    const { record, facts } = given({ everyMs: PERIOD_MS });
    const refusal = refused();
    record.refused(refusal);
    record.refused(refusal);
    await yieldToEventLoop();
    expect(facts()).toEqual([]);
    await until(() => facts().length === 1);
    record.refused(refusal);
    await until(() => facts().length === 2);
    expect(facts().map(({ count }) => count)).toEqual([2, 1]);
    await record.close();
    expect(facts()).toHaveLength(2);
  });

  it('is separate for each key, in one append per tenant', async () => {
    const { record, appended } = given();
    const other = randomUUID();
    for (const refusal of [refused(), refused(), refused({ tenantId: other })]) record.refused(refusal);
    await record.close();
    expect(appended.map(({ tenantId, events }) => [tenantId, events.length])).toEqual([
      [TENANT, 2],
      [other, 1],
    ]);
  });

  it('distinguishes at most a hundred addresses, and says so', async () => {
    const { record, facts } = given();
    const refusal = refused();
    for (let i = 0; i < 1_000; i += 1) record.refused({ ...refusal, address: `2001:db8::${i}` });
    await record.close();
    expect(facts()[0]).toMatchObject({ count: 1_000, addressCount: 100 });
    expect(() => encode({ type: 'AccessRefused', data: facts()[0]! }, { at: time(0) })).not.toThrow();
  });

  it('is limited to a maximum number of keys, and says so', async () => {
    const { record, facts, warnings } = given({ maxKeys: 3 });
    for (let i = 0; i < 10; i += 1) record.refused(refused());
    await record.close();
    expect(facts()).toHaveLength(3);
    expect(warnings).toEqual(['Some refused access was not recorded.']);
  });

  it('has room for other tenants, however many keys of one are refused', async () => {
    const { record, appended, warnings } = given({ maxKeys: 150 });
    for (let i = 0; i < 200; i += 1) record.refused(refused());
    const other = refused({ tenantId: randomUUID() });
    record.refused(other);
    await record.close();
    const ofOther = appended.filter(({ tenantId }) => tenantId === other.tenantId);
    expect(ofOther.map(({ events }) => events[0]?.data)).toEqual([
      expect.objectContaining({ keyId: other.keyId }),
    ]);
    expect(warnings).toEqual(['Some refused access was not recorded.']);
  });

  /** A log that is away when it is asked for the first time, and answers that only when it is told to. */
  const slowlyAway = () => {
    const [isAsked, answer] = [deferred(), deferred()];
    const appended: NewEvent[] = [];
    let isThere = false;
    const append = async (_: string, events: readonly NewEvent[]): Promise<void> => {
      isAsked.resolve();
      await answer.promise;
      if (isThere) return void appended.push(...events);
      isThere = true;
      throw fault('log_unavailable', 'Not now.');
    };
    return { append, appended, isAsked: isAsked.promise, answer: answer.resolve };
  };

  it('adds refusals that come while the log is asked', async () => {
    const { append, appended, isAsked, answer } = slowlyAway();
    const { record } = given({ append, everyMs: PERIOD_MS });
    const refusal = refused({ permissions: ['tenant:read'] });
    record.refused(refusal);
    await isAsked;
    record.refused({ ...refusal, permissions: ['log:read'], address: 'b', fault: 'expired', at: time(9) });
    answer();
    await until(() => appended.length > 0);
    expect(appended.map(({ data }) => data)).toEqual([
      expect.objectContaining({
        count: 2,
        faults: ['revoked', 'expired'],
        permissions: ['tenant:read', 'log:read'],
        addresses: ['192.0.2.1', 'b'],
        firstAt: time(0),
        lastAt: time(9),
      }),
    ]);
    await record.close();
  });

  it('keeps no more keys than its maximum while the log is away, and says so', async () => {
    const { append, appended, isAsked, answer } = slowlyAway();
    const { record, warnings } = given({ append, everyMs: PERIOD_MS, maxKeys: 1 });
    const first = refused();
    record.refused(first);
    await isAsked;
    record.refused(refused());
    answer();
    await until(() => appended.length > 0);
    expect(appended.map(({ data }) => data['keyId'])).toEqual([first.keyId]);
    expect(warnings.at(-1)).toBe('Some refused access was not recorded.');
    await record.close();
  });

  it('keeps what the log did not accept, and adds later refusals', async () => {
    let isThere = false;
    const appended: NewEvent[] = [];
    const append = async (_: string, events: readonly NewEvent[]): Promise<void> => {
      if (!isThere) throw fault('log_unavailable', 'Not now.');
      appended.push(...events);
    };
    const { record, warnings } = given({ append, everyMs: PERIOD_MS });
    const refusal = refused();
    record.refused({ ...refusal, address: 'a' });
    await until(() => warnings.length > 0);
    record.refused({ ...refusal, address: 'b', fault: 'expired', at: time(9) });
    isThere = true;
    await until(() => appended.length === 1);
    expect(appended[0]?.data).toMatchObject({
      count: 2,
      faults: ['revoked', 'expired'],
      addresses: ['a', 'b'],
      firstAt: time(0),
      lastAt: time(9),
    });
    await record.close();
  });

  it('does not repeat what the log may have accepted', async () => {
    const asked: (readonly unknown[])[] = [];
    const append = async (_: string, events: readonly NewEvent[]): Promise<void> => {
      asked.push(events.map(({ data }) => data['keyId']));
      throw fault('outcome_unknown', 'Perhaps.');
    };
    const { record } = given({ append, everyMs: PERIOD_MS });
    const [first, second] = [refused(), refused()];
    record.refused(first);
    await until(() => asked.length === 1);
    record.refused(second);
    await until(() => asked.length === 2);
    await record.close();
    expect(asked).toEqual([[first.keyId], [second.keyId]]);
  });

  it('writes nothing that does not match its schema, since it would park the tenant', async () => {
    const { record, appended, warnings } = given();
    record.refused(refused({ address: 'x'.repeat(65) }));
    await record.close();
    expect([appended, warnings.length]).toEqual([[], 1]);
  });

  it('does not delay the end of the process forever', async () => {
    const { record, warnings } = given({ append: () => new Promise(() => undefined), closeMs: 50 });
    record.refused(refused());
    const startedAt = Date.now();
    await record.close();
    expect(Date.now() - startedAt).toBeLessThan(5_000);
    expect(warnings).toEqual(['The last refused access could not be recorded.']);
  });
});
