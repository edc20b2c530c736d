import { randomUUID } from 'node:crypto';
import { addService, addServiceKey, revokeService, revokeServiceKey } from '../../src/domain/services';
import { appendToEnd, type EventLog } from '../../src/event-log/event-log';
import { fault } from '../../src/fault';
import { newServiceKey } from '../../src/ledger/api-key';
import { knownServices } from '../../src/ledger/services';
import { anEvent } from '../support/events';
import { OWNER } from '../support/given';
import { soon, streams } from '../support/ledgers';
import { passTime } from '../support/pass-time';
import { openSqliteLog } from '../support/sqlite-logs';

const operator = { type: 'user', id: OWNER } as const;

const opened = async () => {
  const real = await openSqliteLog();
  let [reads, isAway] = [0, false];
  const log: EventLog = {
    ...real,
    readStream: (...from) => {
      reads += 1;
      if (isAway) throw fault('log_unavailable', 'Away.');
      return real.readStream(...from);
    },
  };
  const services = knownServices({ log, streams }, 60_000);
  const elsewhere = knownServices({ log: real, streams }, 60_000);
  const { input } = newServiceKey();
  const id = randomUUID();
  await elsewhere.execute(addService({ id, name: 'Gateway', may: ['facts'] }, input), operator);
  const identify = (isRead = false, digest = input.digest, at = new Date().toISOString()) =>
    services
      .identify({ digest, at, deadline: soon() }, isRead)
      .catch(({ code, more }: { code: string; more?: { reason?: string } }) => more?.reason ?? code);
  const plant = (type: string, data: object = {}) =>
    appendToEnd(real, streams.operator(), [anEvent({ ...data }, { type, metadata: { version: 1 } })]);
  return {
    id,
    input,
    services,
    elsewhere,
    identify,
    plant,
    be: (away: boolean) => (isAway = away),
    reads: () => reads,
  };
};

describe('the services of the operator', () => {
  let here: Awaited<ReturnType<typeof opened>>;
  beforeEach(async () => {
    here = await opened();
  });

  it('are known by their keys, of which there may be several', async () => {
    const { id, input, elsewhere, identify } = here;
    const found = { id, name: 'Gateway', may: ['facts'], keyId: input.keyId };
    expect(await identify()).toEqual(found);
    const { input: second } = newServiceKey();
    await elsewhere.execute(addServiceKey(id, second), operator);
    expect(await identify(false, second.digest)).toEqual({ ...found, keyId: second.keyId });
    expect(await identify(false, 'unknown')).toBe('unknown');
    await elsewhere.execute(revokeServiceKey(input.keyId), operator);
    passTime(501);
    expect([await identify(), await identify(false, second.digest)]).toMatchObject(['revoked', { id }]);
    await elsewhere.execute(revokeService(id), operator);
    passTime(501);
    expect(await identify(false, second.digest)).toBe('revoked');
  });

  it('are not known by a key that has expired', async () => {
    const { input } = newServiceKey('2100-01-01T00:00:00.000Z');
    await here.elsewhere.execute(addServiceKey(here.id, input), operator);
    expect(await here.identify(false, input.digest, '2099-12-31T23:59:59.999Z')).toMatchObject({
      id: here.id,
    });
    expect(await here.identify(false, input.digest, '2100-01-01T00:00:00.000Z')).toBe('expired');
    const late = newServiceKey('2000-01-01T00:00:00.000Z').input;
    await expect(here.elsewhere.execute(addServiceKey(here.id, late), operator)).rejects.toMatchObject({
      code: 'validation_failed',
    });
  });

  it('are read once in 500 ms, however many ask', async () => {
    const burst = () => Promise.all(Array.from({ length: 1_000 }, () => here.identify()));
    await burst();
    await burst();
    expect(here.reads()).toBe(1);
    passTime(501);
    await burst();
    expect(here.reads()).toBe(2);
  });

  it('are read on for a minute while the log is away, but report nothing', async () => {
    await here.identify();
    here.be(true);
    expect(await here.identify()).toMatchObject({ id: here.id });
    passTime(501);
    expect(await here.identify()).toBe('log_unavailable');
    expect(await here.identify(true)).toMatchObject({ id: here.id });
    passTime(60_000);
    expect(await here.identify(true)).toBe('log_unavailable');
  });

  it.each([
    ['is of a type that only a newer program knows', 'ServiceSuspended', {}],
    ['does not fit its schema', 'ServiceKeyRevoked', { keyId: 'x' }],
    ['is impossible', 'ServiceRevoked', { serviceId: randomUUID() }],
  ])('are not known at all if an event about them %s', async (_, type, data) => {
    expect(await here.identify()).toMatchObject({ id: here.id });
    await here.plant('EventSetAside', { nonsense: true });
    passTime(501);
    expect(await here.identify()).toMatchObject({ id: here.id });
    await here.plant(type, data);
    passTime(501);
    for (const isRead of [false, true, true]) expect(await here.identify(isRead)).toBe('services_unreadable');
    const { input } = newServiceKey();
    await expect(here.services.execute(addServiceKey(here.id, input), operator)).rejects.toMatchObject({
      code: 'services_unreadable',
    });
  });

  it('are decided about at the revision of the append', async () => {
    const keys = Array.from({ length: 8 }, () => newServiceKey().input);
    await Promise.all(
      keys.map((input, at) =>
        (at % 2 === 0 ? here.services : here.elsewhere).execute(addServiceKey(here.id, input), operator),
      ),
    );
    for (const { digest } of keys) expect(await here.identify(false, digest)).toMatchObject({ id: here.id });
    const again = revokeService(here.id);
    const ends = await Promise.allSettled([
      here.services.execute(again, operator),
      here.elsewhere.execute(again, operator),
    ]);
    expect(ends.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  });
});
