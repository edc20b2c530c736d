import { status } from '@grpc/grpc-js';
import { randomUUID } from 'node:crypto';
import type { EventLog, LoggedEvent } from '../../src/event-log/event-log';
import { TIMES } from '../../src/times';
import { followed, onStandIn, openOn, standIn } from '../support/event-store/logs';
import type { AppendFault } from '../support/event-store/stand-in';
import { storedLog } from '../support/event-store/stored-log';
import { anEvent, eventsOf, idsOf, someEvents } from '../support/events';
import { refusedWith, succeeds, timed, until } from '../support/waiting';

/** What a busy machine may add to a bound. */
const SLACK_MS = 400;

/** How long until an append succeeds again. */
const untilWorking = async (log: EventLog, stream: string): Promise<number> => {
  const isWorking = () => succeeds(log.append(stream, someEvents(1), 'no_stream'));
  return (await timed(() => until(isWorking))).ms;
};

describe('an append to the event store', () => {
  it.each<[AppendFault, string]>([
    ['commit_and_cut', 'written, but the connection is cut instead of an answer'],
    ['commit_and_hang', 'written, but never answered'],
    ['hang', 'neither written nor answered'],
    ['cut', 'not written, the connection is cut'],
    ['timeout', 'the server says that it timed out'],
    ['strange', 'the server answers an error without saying which'],
  ])('that meets %s is settled by repeating it, and stored once: %s', async (fault) => {
    const { log, server, aStream } = await onStandIn();
    const stream = aStream();
    await log.append(stream, someEvents(2), 'no_stream');
    server.nextAppend(fault);
    const events = someEvents(3);
    const { value, ms } = await timed(() => log.append(stream, events, 1));
    expect(value.revision).toBe(4);
    expect(idsOf(await eventsOf(log.readStream(stream, 1)))).toEqual(idsOf(events));
    expect(ms).toBeLessThan(TIMES.appendMs + SLACK_MS);
  });

  it('that is never answered has an unknown outcome, in time, and can be settled later', async () => {
    const { log, server, aStream } = await onStandIn();
    const stream = aStream();
    server.nextAppend('commit_and_hang');
    server.nextAppend('hang');
    const events = someEvents(1);
    const { value, ms } = await timed(() => refusedWith(log.append(stream, events, 'no_stream')));
    expect(value).toBe('outcome_unknown');
    expect(ms).toBeLessThan(TIMES.appendMs + SLACK_MS);
    expect((await log.append(stream, events, 'no_stream')).revision).toBe(0);
    expect(await eventsOf(log.readStream(stream))).toHaveLength(1);
  });

  it('is reported as not written while the server is down, and succeeds on the same log when it is back', async () => {
    const { log, server, aStream } = await onStandIn();
    const tail = followed(log);
    const first = someEvents(1);
    await log.append(aStream(), first, 'no_stream');
    await until(() => tail.seen.length === 1);
    await server.kill();
    await until(async () => (await refusedWith(log.head().then(() => undefined))) === 'log_unavailable');
    const { value, ms } = await timed(() => refusedWith(log.append(aStream(), someEvents(1), 'no_stream')));
    expect(value).toBe('log_unavailable');
    expect(ms).toBeLessThan(SLACK_MS);
    expect(await refusedWith(eventsOf(log.readStream(aStream())))).toBe('log_unavailable');
    await server.restart();
    expect(await untilWorking(log, aStream())).toBeLessThan(3_000);
    await until(() => tail.seen.length === 2);
    expect(idsOf(tail.seen)).toEqual(idsOf(await eventsOf(log.readAll())));
  });

  it('goes to the leader named by another server', async () => {
    const shared = storedLog();
    const leader = await standIn({ log: shared });
    const { log, server, aStream } = await onStandIn({ log: shared });
    server.notLeader({ host: '127.0.0.1', port: leader.port });
    const stream = aStream();
    expect((await log.append(stream, someEvents(1), 'no_stream')).revision).toBe(0);
    expect(leader.asked.append).toBe(1);
    expect(await eventsOf(log.readStream(stream))).toHaveLength(1);
    await leader.kill();
    server.notLeader(undefined);
    await untilWorking(log, aStream());
  });

  it('has an unknown outcome if the named leader is down: the server that stepped down may have written it', async () => {
    const { log, server, aStream } = await onStandIn();
    const leader = await standIn();
    await leader.kill();
    server.notLeader({ host: '127.0.0.1', port: leader.port });
    expect(await refusedWith(log.append(aStream(), someEvents(1), 'no_stream'))).toBe('outcome_unknown');
  });

  it('is reported as not written by a server that is not ready', async () => {
    const { log, server, aStream } = await onStandIn();
    server.refuseAll({ code: status.UNAVAILABLE, details: 'Server Is Not Ready' });
    expect(await refusedWith(log.append(aStream(), someEvents(1), 'no_stream'))).toBe('log_unavailable');
    server.refuseAll(undefined);
    await untilWorking(log, aStream());
  });

  it('that is too large for this server is refused with a message', async () => {
    const { log, aStream } = await onStandIn({ maxAppendSize: 5_000 });
    const stream = aStream();
    const large = log.append(stream, [anEvent({ text: 'x'.repeat(6_000) })], 'no_stream');
    await expect(large).rejects.toMatchObject({
      code: 'event_too_large',
      message: 'The event store takes at most 5000 bytes at once.',
    });
    expect((await log.append(stream, someEvents(1), 'no_stream')).revision).toBe(0);
  });

  it('is not confused by responses of another server, nor by a late one', async () => {
    const [one, other] = [await onStandIn(), await onStandIn()];
    one.server.nextAppend('late');
    const stream = one.aStream();
    const slow = refusedWith(one.log.append(stream, someEvents(1), 'no_stream', 300));
    const quick = other.log.append(other.aStream(), someEvents(1), 'no_stream');
    await other.server.kill();
    await quick.catch(() => undefined);
    expect(await slow).toBe('no refusal');
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect((await one.log.append(stream, someEvents(1), 0)).revision).toBe(1);
  });
});

describe('a subscription to the event store', () => {
  const following = async () => {
    const one = await onStandIn();
    const tail = followed(one.log);
    const stream = one.aStream();
    await one.log.append(stream, someEvents(3), 'no_stream');
    await until(() => tail.seen.length === 3);
    const [subscription] = one.server.subscriptions;
    return { ...one, tail, stream, subscription: subscription! };
  };

  const expectAll = async (log: EventLog, tail: ReturnType<typeof followed>, count: number) => {
    await until(() => tail.seen.length >= count, 20_000);
    expect(idsOf(tail.seen)).toEqual(idsOf(await eventsOf(log.readAll())));
    expect(tail.seen).toHaveLength(count);
  };

  it('that ends normally is resumed', async () => {
    const { log, tail, stream, subscription, warnings } = await following();
    subscription.end();
    await log.append(stream, someEvents(2), 2);
    await expectAll(log, tail, 5);
    expect(warnings).toEqual([]);
  });

  it.each([
    ['an error', status.INTERNAL],
    ['a cancellation by the server', status.CANCELLED],
    ['an unavailable server', status.UNAVAILABLE],
  ])('that ends with %s is resumed', async (_, code) => {
    const { log, tail, stream, subscription } = await following();
    subscription.fail(code, 'Something went wrong.');
    await log.append(stream, someEvents(2), 2);
    await expectAll(log, tail, 5);
  });

  it('whose connection is cut again and again neither skips nor repeats', async () => {
    const { log, server, tail, stream } = await following();
    let revision = 2;
    for (let round = 0; round < 20; round += 1) {
      ({ revision } = await log.append(stream, someEvents(5), revision));
      server.gate.cut();
    }
    await expectAll(log, tail, 103);
  });

  it('misses no event written by others while its server was down, or before it was back', async () => {
    const { log, server, tail, stream, streams } = await following();
    const { log: other } = await openOn(server.url, { prefix: streams.prefix });
    await server.kill();
    await until(async () => (await refusedWith(log.head().then(() => undefined))) === 'log_unavailable');
    const data = Buffer.from('{}');
    const raw = { type: 'X', contentType: 'application/json', data, metadata: data };
    for (let i = 0; i < 5; i += 1) server.log.append(stream, 'any', [{ id: randomUUID(), ...raw }]);
    await server.restart();
    await until(
      async () => (await refusedWith(other.append(stream, someEvents(2), 7, 5_000))) === 'no refusal',
    );
    await expectAll(log, tail, 10);
  });

  it('that is dropped because it lags resumes where it was, silently', async () => {
    const { log, server, tail, stream, warnings } = await following();
    const before = server.asked.read;
    await log.append(stream, someEvents(1_000), 2, 20_000);
    await log.append(stream, someEvents(10), 1_002, 20_000);
    await expectAll(log, tail, 1_013);
    expect(server.asked.read - before).toBeGreaterThan(1);
    expect(warnings).toEqual([]);
  });

  it('does not trust a checkpoint ahead of the events it received', async () => {
    const { log, tail, stream, subscription } = await following();
    subscription.mute();
    const { position } = await log.append(stream, someEvents(4), 2);
    subscription.lie(BigInt(position));
    subscription.lie(2n ** 64n - 1n);
    await new Promise((resolve) => setTimeout(resolve, 50));
    subscription.fail(status.ABORTED, 'Consumer too slow to handle event while live.');
    await expectAll(log, tail, 7);
  });

  it('that stalls, or whose server freezes, is noticed within 15 s', async () => {
    const mute = await following();
    const frozen = await following();

    const silent = async (): Promise<void> => {
      mute.subscription.mute();
      await mute.log.append(mute.stream, someEvents(1), 2);
      await until(() => mute.tail.seen.length === 4, 15_000);
    };
    const freezeServer = async (): Promise<void> => {
      frozen.server.gate.freeze();
      const events = someEvents(1);
      const { value, ms } = await timed(() => refusedWith(frozen.log.append(frozen.stream, events, 2)));
      expect(value).toBe('outcome_unknown');
      expect(ms).toBeLessThan(TIMES.appendMs + SLACK_MS);
      expect(await refusedWith(eventsOf(frozen.log.readStream(frozen.stream)))).toBe('log_unavailable');
      await until(() => frozen.warnings.length > 0, 15_000);
      expect(frozen.server.gate.connections().ever).toBeGreaterThan(1);
      frozen.server.gate.thaw();
      await until(
        async () => (await refusedWith(frozen.log.append(frozen.stream, events, 2))) === 'no refusal',
      );
      await expectAll(frozen.log, frozen.tail, 4);
    };
    await Promise.all([silent(), freezeServer()]);
  });
});

describe('a read of the event store', () => {
  it('that fails after everything was received is complete, backwards and forwards', async () => {
    const { log, server, aStream } = await onStandIn();
    const stream = aStream();
    const events = someEvents(20);
    const { position } = await log.append(stream, events, 'no_stream');
    // As many foreign events as the first look for our newest event covers.
    await log.append('others', someEvents(8), 'no_stream');
    server.failReads(1);
    const { value, ms } = await timed(() => log.head());
    expect(value).toEqual({ position, eventId: events[19]!.id });
    expect(ms).toBeLessThan(1_000);
    server.failReads(2);
    expect(idsOf(await eventsOf(log.readStream(stream)))).toEqual(idsOf(events));
  });

  it('of the whole log goes on where the server ended it', async () => {
    const { log, server, aStream } = await onStandIn();
    const events = Array.from({ length: 20 }, () => anEvent({ text: 'x'.repeat(50_000) }));
    await log.append(aStream(), events, 'no_stream');
    const seen: LoggedEvent[] = [];
    for await (const batch of log.readAll()) {
      if (seen.length === 0) for (const subscription of server.subscriptions) subscription.end();
      seen.push(...batch);
    }
    expect(idsOf(seen)).toEqual(idsOf(events));
  });
});

describe('a shared event store', () => {
  it('may hold foreign streams and system streams: only whole names of ours count', async () => {
    const server = await standIn();
    const prefix = 'ours.';
    const { log, streams } = await openOn(server.url, { prefix });
    const tail = followed(log);
    const foreign = [
      `tenant-${randomUUID()}`,
      `${prefix}tenant-`,
      `${prefix}tenant-${randomUUID()}-more`,
      `${prefix}activity-x`,
      `${prefix}operators`,
      `other.${prefix}tenant-${randomUUID()}`,
      'log',
      '$$ours.operator',
    ];
    const add = async (stream: string) => {
      const event = anEvent();
      await log.append(stream, [event], 'no_stream');
      return event.id;
    };
    const [tenant, operator] = [streams.tenant(randomUUID()), streams.operator()];
    const ids = [await add(tenant)];
    for (const name of foreign) await add(name);
    ids.push(await add(operator));
    for (let i = 0; i < 3; i += 1) await add(`others-${i}`);
    await until(() => tail.seen.length >= 2);
    expect(idsOf(tail.seen)).toEqual(ids);
    const all = await eventsOf(log.readAll());
    expect(idsOf(all)).toEqual(ids);
    expect(await log.head()).toEqual({ position: all[1]?.position, eventId: ids[1] });
    const { log: fresh } = await openOn(server.url, { prefix });
    expect(await fresh.head()).toEqual(await log.head());
    expect(await fresh.distance(undefined, all[1]!.position)).toBe(2);
    const others = server.log.records.find(({ stream }) => stream === 'others-0');
    const known = (position: bigint) => ({ eventId: ids[0]!, position: String(position).padStart(20, '0') });
    expect(await log.continuity(known(others!.position))).toBe('set_back');
    expect(await log.continuity(known(others!.position + 1n))).toBe('missing');
  });

  it('that cannot skip foreign events is read through, and our newest event is found', async () => {
    const { server, aStream, log, streams } = await onStandIn({ readsWithoutFilters: true });
    const { position } = await log.append(aStream(), someEvents(1), 'no_stream');
    await log.append('others', someEvents(100), 'no_stream');
    const { log: fresh } = await openOn(server.url, { prefix: streams.prefix });
    expect((await fresh.head())?.position).toBe(position);
  });

  it('keeps positions that exceed a JavaScript number', async () => {
    const begin = 2n ** 63n + 12_345n;
    const { log, aStream } = await onStandIn({ log: storedLog(begin) });
    const stream = aStream();
    await log.append(stream, someEvents(5), 'no_stream');
    const all = await eventsOf(log.readAll());
    expect(all).toHaveLength(5);
    expect(new Set(all.map(({ position }) => position)).size).toBe(5);
    for (const [i, { id, position }] of all.entries()) {
      expect(BigInt(position)).toBeGreaterThan(begin);
      expect(await log.continuity({ eventId: id, position })).toBe('whole');
      expect(idsOf(await eventsOf(log.readAll({ after: position })))).toEqual(idsOf(all.slice(i + 1)));
    }
    expect(await log.distance(all[0]!.position, all[4]!.position)).toBe(4);
  });

  it('may hold endlessly nested data, and data that is not an object', async () => {
    const { log, server, streams } = await onStandIn();
    const deep = Buffer.from(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);
    const raw = (stream: string, data: Buffer) =>
      server.log.append(stream, 'any', [
        { id: randomUUID(), type: 'X', contentType: 'application/json', data, metadata: data },
      ]);
    const stream = streams.activity(randomUUID());
    raw(stream, Buffer.from('[1,null,"two"]'));
    raw('others', deep);
    expect((await log.head())?.eventId).toBe(server.log.ofStream(stream)[0]?.id);
    raw(stream, deep);
    const [first, second] = await eventsOf(log.readStream(stream));
    expect(first?.data).toEqual([1, null, 'two']);
    expect(Array.isArray(second?.data)).toBe(true);
  });

  it('returns data that is not JSON as bytes', async () => {
    const { log, server, streams } = await onStandIn();
    const stream = streams.activity(randomUUID());
    const bytes = Buffer.from([0xff, 0, 0xfe]);
    const raw = (contentType: string, data: Buffer, metadata: Buffer) =>
      server.log.append(stream, 'any', [{ id: randomUUID(), type: 'X', contentType, data, metadata }]);
    raw('application/json', Buffer.from('no JSON ä'), Buffer.from('{}'));
    raw('application/octet-stream', bytes, Buffer.from('{'));
    raw('application/json', Buffer.from('{}'), Buffer.alloc(0));
    const events = await eventsOf(log.readStream(stream));
    expect(events[0]).toMatchObject({ data: Buffer.from('no JSON ä'), metadata: {} });
    expect(events[1]).toMatchObject({ data: bytes, metadata: Buffer.from('{') });
    expect(events[2]?.metadata).toBeUndefined();
  });
});
