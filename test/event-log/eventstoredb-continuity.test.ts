import { randomUUID } from 'node:crypto';
import type { LoggedEvent } from '../../src/event-log/event-log';
import { follow as followLog } from '../../src/event-log/eventstoredb/follow';
import { codeOf } from '../../src/fault';
import { onStandIn, openOn, standIn } from '../support/event-store/logs';
import type { StandIn } from '../support/event-store/stand-in';
import { storedLog } from '../support/event-store/stored-log';
import { eventsOf, idsOf, someEvents } from '../support/events';
import { refusedWith, until } from '../support/waiting';

const knownOf = ({ id, position }: LoggedEvent) => ({ eventId: id, position });

/** As an operator does it: stops the node, replaces its data with an older copy, and starts it again. */
const restore = async (server: StandIn, records: number): Promise<void> => {
  await server.kill();
  server.log.restore(records);
  await server.restart();
};

const others = (server: StandIn, count: number, stream = 'others'): void => {
  const data = Buffer.from('{"text":"of somebody else"}');
  const event = () => ({
    id: randomUUID(),
    type: 'X',
    contentType: 'application/json',
    data,
    metadata: data,
  });
  for (let i = 0; i < count; i += 1) server.log.append(stream, 'any', [event()]);
};

describe('the continuity of a log in the event store', () => {
  const written = async () => {
    const opened = await onStandIn();
    const stream = opened.aStream();
    await opened.log.append(stream, someEvents(20), 'no_stream');
    const all = await eventsOf(opened.log.readAll());
    return { ...opened, stream, all, last: knownOf(all.at(-1)!) };
  };

  it('is broken by a node restored from an older copy', async () => {
    const { log, server, all, last } = await written();
    await restore(server, server.log.records.length - 12);
    await until(async () => (await refusedWith(log.head())) === 'no refusal');
    expect(await log.continuity(last)).toBe('set_back');
    expect(await log.continuity(knownOf(all[7]!))).toBe('whole');
    expect(await log.head()).toEqual(knownOf(all[7]!));
    expect(idsOf(await eventsOf(log.readAll()))).toEqual(idsOf(all.slice(0, 8)));
  });

  it('stays broken when that node has grown past the event: another event is there, or none', async () => {
    const { log, server, stream, last } = await written();
    await restore(server, server.log.records.length - 12);
    await until(
      async () => (await refusedWith(log.append(stream, someEvents(30), 7, 5_000))) === 'no refusal',
    );
    expect(await log.continuity(last)).toMatch(/^(missing|set_back)$/);
    const same = await eventsOf(log.readAll());
    const other = { eventId: last.eventId, position: same[20]!.position };
    expect(await log.continuity(other)).toBe('set_back');
  });

  it('distinguishes a scavenged event from a log that was rolled back, even if it was the last of ours', async () => {
    const { log, server, all, last } = await written();
    others(server, 3);
    server.log.scavenge(all[9]!.id);
    server.log.scavenge(last.eventId);
    expect(await log.continuity(knownOf(all[9]!))).toBe('missing');
    expect(await log.continuity(last)).toBe('missing');
    expect(await log.continuity(knownOf(all[18]!))).toBe('whole');
  });

  it('is broken by another log, or none, in its place', async () => {
    const ownLog = storedLog();
    const server = await standIn({ log: ownLog });
    const { log } = await openOn(server.url, { prefix: 'ours.' });
    expect(await log.continuity()).toBe('whole');
    ownLog.restore(0);
    expect(await log.continuity()).toBe('replaced');
    await openOn(server.url, { prefix: 'ours.' });
    expect(await log.continuity()).toBe('replaced');
  });

  it('is unknown while the node is down', async () => {
    const { log, server, last } = await written();
    await server.kill();
    expect(await refusedWith(log.continuity(last))).toBe('log_unavailable');
  });

  it.each([
    ['and nobody writes', 0],
    ['and has grown since', 60],
  ])('is checked before a follower gets anything from a node that came back, %s', async (_, more) => {
    const { server, stream, streams } = await written();
    const { log } = await openOn(server.url, { prefix: streams.prefix, doubtMs: 100 });
    const seen: LoggedEvent[] = [];
    const follow = async (): Promise<void> => {
      for await (const batch of log.readAll({ follow: true })) seen.push(...batch);
    };
    const following = refusedWith(follow());
    await until(() => seen.length === 20);
    const all = idsOf(seen);
    await server.kill();
    server.log.restore(server.log.records.length - 12);
    others(server, more, stream);
    await server.restart();
    expect(await following).toBe('log_set_back');
    expect(idsOf(seen)).toEqual(all);
  });
});

describe('a stream whose events were removed from the event store', () => {
  const withStream = async () => {
    const opened = await onStandIn();
    const stream = opened.aStream();
    await opened.log.append(stream, someEvents(5), 'no_stream');
    return { ...opened, stream };
  };

  it.each([
    ['was permanently deleted', 'tombstone', /permanently deleted \(tombstoned\) in the event store/],
    ['was deleted', 'softDelete', /was deleted in the event store/],
  ] as const)('and %s is neither an empty stream nor unavailable', async (_, how, words) => {
    const { log, server, stream } = await withStream();
    server.log[how](stream);
    for (const after of [-1, 4])
      await expect(eventsOf(log.readStream(stream, after))).rejects.toMatchObject({
        code: 'history_missing',
        message: expect.stringMatching(words),
      });
  });

  it('completely, by age or count, is not an empty stream', async () => {
    const { log, server, stream } = await withStream();
    server.log.truncate(stream, 5);
    expect(await refusedWith(eventsOf(log.readStream(stream)))).toBe('history_missing');
    expect(await eventsOf(log.readStream(stream, 4))).toEqual([]);
  });

  it('at its start continues with what is left', async () => {
    const { log, server, stream } = await withStream();
    server.log.truncate(stream, 2);
    expect((await eventsOf(log.readStream(stream))).map(({ revision }) => revision)).toEqual([2, 3, 4]);
  });
});

describe('the stream with the identity of the log', () => {
  const put = (server: StandIn, type: string, data: unknown): void => {
    const bytes = Buffer.from(JSON.stringify(data));
    const event = { id: randomUUID(), type, contentType: 'application/json', data: bytes, metadata: bytes };
    server.log.append('log', 'any', [event]);
  };
  const opened = async (prepare: (server: StandIn) => void) => {
    const server = await standIn();
    prepare(server);
    return openOn(server.url, { prefix: '' }).then(
      () => 'opened',
      (error: unknown) => `${codeOf(error)}: ${(error as Error).message}`,
    );
  };
  const identity = randomUUID();

  it.each<[string, (server: StandIn) => void]>([
    ['of another type', (server) => put(server, 'LogStarted', { identity })],
    ['with an identity that is not a UUID', (server) => put(server, 'LogMade', { identity: 'mine' })],
    ['with no identity', (server) => put(server, 'LogMade', null)],
    [
      'that is not its first',
      (server) => {
        put(server, 'Other', { identity });
        put(server, 'LogMade', { identity });
        server.log.truncate('log', 1);
      },
    ],
  ])('is not taken for ours with an event %s', async (_, prepare) => {
    expect(await opened(prepare)).toMatch(
      /^log_unavailable: .*belongs to another program. Choose a STREAM_PREFIX/,
    );
  });

  it('is not started again after it was deleted', async () => {
    const deleted = (server: StandIn): void => {
      put(server, 'LogMade', { identity });
      server.log.softDelete('log');
    };
    expect(await opened(deleted)).toMatch(/^history_missing: Stream log was deleted in the event store/);
  });

  it('is ours if it starts with a LogMade event with a UUID', async () => {
    expect(await opened((server) => put(server, 'LogMade', { identity, format: 1 }))).toBe('opened');
  });
});

it('a follower delivers nothing of a log that was set back just before it was subscribed to', async () => {
  const event = { id: 'b', position: '2', stream: 'tenant-x' } as LoggedEvent;
  const [batches, states] = [[[event]], ['whole']];
  const next = async () => batches.shift();
  const following = {
    connection: { onRenewed: () => () => true, client: () => undefined },
    log: {
      subscribe: () => ({ next, alive: () => undefined, stop: () => undefined }),
      head: async () => ({ eventId: 'a', position: '1' }),
      isOurs: () => true,
    },
    continuity: async () => states.shift() ?? 'set_back',
    doubtMs: 1,
    closing: new AbortController().signal,
    onError: () => undefined,
  } as unknown as Parameters<typeof followLog>[0];
  const first = followLog(following, '1').next();
  await expect(first).rejects.toMatchObject({ code: 'log_set_back' });
});
