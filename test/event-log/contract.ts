import * as fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import { letOthersGo, monotonicMs } from '../../src/clock';
import {
  LARGEST_APPEND,
  type EventLog,
  type LoggedEvent,
  type NewEvent,
} from '../../src/event-log/event-log';
import { decode } from '../../src/event-log/codec';
import type { Streams } from '../../src/event-log/streams';
import { anEvent, eventsOf, idsOf, someEvents } from '../support/events';
import { seed, seeded } from '../support/property';
import { sampleOf } from '../support/samples';
import { refusedWith, until } from '../support/waiting';

export interface OpenedLog {
  readonly log: EventLog;
  /** The names of its streams: several logs may share a server, each with a prefix of its own. */
  readonly streams: Streams;
  /** How many reads and subscriptions its server has open, where that can be known. */
  readonly openReads?: () => number;
  /** Closes it and opens the same log again, as a restarted program would. */
  reopen(): Promise<OpenedLog>;
}

type Open = () => Promise<OpenedLog>;

const NOWHERE = 'There is nothing';

/** Appends one event after another until there are so many, and gives all of them. */
const grow = async (
  log: EventLog,
  stream: string,
  count: number,
  after = -1,
): Promise<readonly NewEvent[]> => {
  const events = someEvents(count);
  for (let at = 0; at < count; at += 500) {
    const revision = after + at;
    await log.append(stream, events.slice(at, at + 500), revision < 0 ? 'no_stream' : revision);
  }
  return events;
};

/** Follows a feed into a list, until it is stopped. */
const following = (feed: (signal: AbortSignal) => AsyncIterable<readonly LoggedEvent[]>) => {
  const abort = new AbortController();
  const seen: LoggedEvent[] = [];
  const ended = (async () => {
    for await (const batch of feed(abort.signal)) seen.push(...batch);
  })();
  return {
    seen,
    ended,
    stop: async () => {
      abort.abort();
      await ended;
    },
  };
};

const isIncreasing = (events: readonly LoggedEvent[]): boolean =>
  events.every(({ position }, i) => i === 0 || events[i - 1]!.position < position);

/** The promises of `src/event-log/event-log.ts`. Every adapter runs this suite and nothing in it knows which one it is. */
export const eventLogContract = (name: string, open: Open): void => {
  describe(`the event log on ${name}`, () => {
    const opened = new Set<EventLog>();
    let log: EventLog;
    let streams: Streams;
    let openReads: OpenedLog['openReads'];
    let reopen: () => Promise<void>;

    const openOne = async (): Promise<OpenedLog> => {
      const one = await open();
      opened.add(one.log);
      return one;
    };

    const take = (one: OpenedLog): void => {
      ({ log, streams, openReads } = one);
      reopen = async () => {
        opened.delete(one.log);
        const again = await one.reopen();
        opened.add(again.log);
        take(again);
      };
    };

    beforeEach(async () => take(await openOne()));
    afterEach(async () => {
      const all = [...opened];
      opened.clear();
      for (const one of all) await one.close();
    });

    const aStream = (of = streams): string => of.tenant(randomUUID());

    describe('distance', () => {
      it('tells how many events lie between two positions', async () => {
        const [one, two] = [aStream(), aStream()];
        await grow(log, one, 3);
        await grow(log, two, 2);
        await log.append(one, someEvents(4), 2);
        const positions = (await eventsOf(log.readAll())).map(({ position }) => position);
        for (const [i, upTo] of positions.entries()) {
          expect(await log.distance(undefined, upTo)).toBe(i + 1);
          for (const [j, after] of positions.entries())
            expect(await log.distance(after, upTo)).toBe(Math.max(0, i - j));
        }
      });

      it('is the same when the log is opened again', async () => {
        await grow(log, aStream(), 600);
        const head = await log.head();
        await reopen();
        expect(await log.distance(undefined, head!.position)).toBe(600);
        expect(await log.distance(head!.position, head!.position)).toBe(0);
      });
    });

    describe('append', () => {
      it('makes a stream and goes on at its last revision', async () => {
        const stream = aStream();
        const first = await log.append(stream, someEvents(1), 'no_stream');
        const second = await log.append(stream, someEvents(3), 0);
        expect([first.revision, second.revision]).toEqual([0, 3]);
        expect(first.position < second.position).toBe(true);
        const events = await eventsOf(log.readStream(stream));
        expect(events.map((event) => event.revision)).toEqual([0, 1, 2, 3]);
        expect(events.at(-1)?.position).toBe(second.position);
      });

      it('keeps everything that it was given', async () => {
        const stream = aStream();
        const event = anEvent(
          { a: [1, 'two', null, { three: 3.5 }] },
          { metadata: { at: 'now', deep: { x: [] } } },
        );
        const before = Date.now();
        const { position } = await log.append(stream, [event], 'no_stream');
        const [stored] = await eventsOf(log.readStream(stream));
        expect(stored).toMatchObject({ ...event, stream, revision: 0, position });
        expect(Date.parse(stored!.recordedAt)).toBeGreaterThanOrEqual(before - 1_000);
        expect(new Date(stored!.recordedAt).toISOString()).toBe(stored!.recordedAt);
      });

      it('keeps when another log has recorded an event, and looks at its own clock for the others', async () => {
        const stream = aStream();
        const metadata = { at: '2020-02-03T04:05:06.789Z', deep: { x: [] } };
        const copied = anEvent({ a: 1 }, { metadata, recordedAt: '2021-02-03T04:05:06.789Z' });
        await log.append(stream, [copied, anEvent({}, { metadata })], 'no_stream');
        const stored = await eventsOf(log.readStream(stream));
        expect(stored[0]).toMatchObject({ recordedAt: copied.recordedAt, data: { a: 1 } });
        expect(stored.map((event) => event.metadata)).toEqual([metadata, metadata]);
        expect(Math.abs(Date.parse(stored[1]!.recordedAt) - Date.now())).toBeLessThan(60_000);
        expect(await log.append(stream, [copied], 'no_stream')).toMatchObject({ revision: 0 });
      });

      it('keeps a recorded time that lies ahead, and says when it took that event in itself', async () => {
        const tenantId = randomUUID();
        const stream = streams.activity(tenantId);
        const ahead = '9999-12-31T23:59:59.999Z';
        const { type, data } = sampleOf('TokenCreated');
        const metadata = { version: 1 };
        const fact = (recordedAt?: string): NewEvent =>
          anEvent(data, { type, metadata, ...(recordedAt === undefined ? {} : { recordedAt }) });
        const before = Date.now();
        await log.append(stream, [fact('2021-02-03T04:05:06.789Z'), fact(ahead), fact()], 'no_stream');
        const stored = await eventsOf(log.readStream(stream));
        expect(stored.map(({ recordedAt }) => recordedAt).slice(0, 2)).toEqual([
          '2021-02-03T04:05:06.789Z',
          ahead,
        ]);
        expect(stored.map(({ storedAt }) => storedAt !== undefined)).toEqual([false, true, false]);
        const ownTime = Date.parse(stored[1]!.storedAt!);
        expect(ownTime).toBeGreaterThanOrEqual(before - 1_000);
        expect(ownTime).toBeLessThanOrEqual(Date.now() + 1_000);

        const seen = (events: readonly LoggedEvent[]) => events.map((event) => decode(event, streams));
        expect(seen(stored)[1]).toMatchObject({
          status: 'good',
          event: { recordedAt: stored[1]!.storedAt, at: stored[1]!.storedAt },
        });
        expect(seen(stored)[0]).toMatchObject({ event: { recordedAt: '2021-02-03T04:05:06.789Z' } });
        await log.append(stream, [fact()], 2);
        for (let round = 0; round < 2; round += 1) {
          for (const again of [log.readStream(stream), log.readTenant(tenantId), log.readAll()])
            expect(seen((await eventsOf(again)).slice(0, 3))).toEqual(seen(stored));
          await reopen();
        }
      });

      it.each(['yesterday', '2021-02-03', '2021-02-03T04:05:06Z', ''])(
        'refuses %j as the moment of an event of another log',
        async (recordedAt) => {
          const stream = aStream();
          await expect(log.append(stream, [anEvent({}, { recordedAt })], 'no_stream')).rejects.toThrow(
            'no moment',
          );
          expect(await eventsOf(log.readStream(stream))).toEqual([]);
        },
      );

      it('refuses no_stream when there is one, and says where the stream is', async () => {
        const stream = aStream();
        await log.append(stream, someEvents(2), 'no_stream');
        await expect(log.append(stream, someEvents(1), 'no_stream')).rejects.toMatchObject({
          code: 'stream_changed',
          more: { actual: 1 },
        });
      });

      it.each([0, 1, 3, 99])('refuses revision %i when the stream is at 2', async (expected) => {
        const stream = aStream();
        await log.append(stream, someEvents(3), 'no_stream');
        await expect(log.append(stream, someEvents(1), expected)).rejects.toMatchObject({
          code: 'stream_changed',
          more: { actual: 2 },
        });
        expect(await eventsOf(log.readStream(stream))).toHaveLength(3);
      });

      it('refuses a revision of a stream that is not there', async () => {
        await expect(log.append(aStream(), someEvents(1), 0)).rejects.toMatchObject({
          code: 'stream_changed',
          more: { actual: -1 },
        });
        expect(await log.head()).toBeUndefined();
      });

      it('writes all the events or none', async () => {
        const stream = aStream();
        await log.append(stream, someEvents(2), 'no_stream');
        const head = await log.head();
        const tooLarge = [...someEvents(3), anEvent({ text: 'x'.repeat(LARGEST_APPEND) })];
        expect(await refusedWith(log.append(stream, tooLarge, 1))).toBe('event_too_large');
        expect(await refusedWith(log.append(stream, someEvents(3), 0))).toBe('stream_changed');
        expect(await eventsOf(log.readStream(stream))).toHaveLength(2);
        expect(await log.head()).toEqual(head);
      });

      it('refuses an empty list', async () => {
        const stream = aStream();
        await expect(log.append(stream, [], 'no_stream')).rejects.toThrow(NOWHERE);
        expect(await log.head()).toBeUndefined();
      });

      it('refuses more than its largest append in all, and works on', async () => {
        const stream = aStream();
        const half = 'x'.repeat(LARGEST_APPEND / 2);
        const both = [anEvent({ half }), anEvent({ half })];
        expect(await refusedWith(log.append(stream, both, 'no_stream'))).toBe('event_too_large');
        expect(await eventsOf(log.readStream(stream))).toEqual([]);
        await log.append(stream, [anEvent({ half })], 'no_stream');
        expect((await log.append(stream, [anEvent({ half })], 0)).revision).toBe(1);
      });

      it('takes exactly its largest append, counted in bytes', async () => {
        const stream = aStream();
        const frame = Buffer.byteLength(JSON.stringify({ text: '' }));
        const room = LARGEST_APPEND - frame;
        const text = 'ä'.repeat(Math.floor(room / 2)) + 'x'.repeat(room % 2);
        expect(await refusedWith(log.append(stream, [anEvent({ text: `${text}x` })], 'no_stream'))).toBe(
          'event_too_large',
        );
        await log.append(stream, [anEvent({ text })], 'no_stream');
        const [stored] = await eventsOf(log.readStream(stream));
        expect((stored!.data as { text: string }).text === text).toBe(true);
      });

      it('lets exactly one of many win that expect the same revision', async () => {
        const stream = aStream();
        await log.append(stream, someEvents(1), 'no_stream');
        for (let revision = 0; revision < 5; revision += 1) {
          const codes = await Promise.all(
            Array.from({ length: 20 }, () => refusedWith(log.append(stream, someEvents(1), revision))),
          );
          expect(codes.filter((code) => code === 'no refusal')).toHaveLength(1);
          expect(codes.filter((code) => code === 'stream_changed')).toHaveLength(19);
        }
        expect(await eventsOf(log.readStream(stream))).toHaveLength(6);
      });

      it('lets exactly one of many make a stream', async () => {
        const stream = aStream();
        const wishes = Array.from({ length: 20 }, () => someEvents(2));
        const answers = await Promise.allSettled(wishes.map((wish) => log.append(stream, wish, 'no_stream')));
        const winners = wishes.filter((_, i) => answers[i]?.status === 'fulfilled');
        expect(winners).toHaveLength(1);
        expect(idsOf(await eventsOf(log.readStream(stream)))).toEqual(idsOf(winners[0]!));
      });

      it('answers within the time it is given', async () => {
        const begun = monotonicMs();
        await refusedWith(log.append(aStream(), someEvents(1), 'no_stream', 1));
        expect(monotonicMs() - begun).toBeLessThan(1_000);
        expect((await log.append(aStream(), someEvents(1), 'no_stream')).revision).toBe(0);
      });
    });

    describe('the same append again', () => {
      it.each(['no_stream', 1] as const)(
        'gives the same answer and writes no copy, expecting %s',
        async (expected) => {
          const stream = aStream();
          if (expected !== 'no_stream') await log.append(stream, someEvents(expected + 1), 'no_stream');
          const events = someEvents(3);
          const first = await log.append(stream, events, expected);
          expect(await log.append(stream, events, expected)).toEqual(first);
          await log.append(stream, someEvents(2), first.revision);
          expect(await log.append(stream, events, expected)).toEqual(first);
          expect(await eventsOf(log.readStream(stream))).toHaveLength(first.revision + 3);
        },
      );

      it('also after the log was opened again', async () => {
        const stream = aStream();
        const events = someEvents(2);
        const first = await log.append(stream, events, 'no_stream');
        await reopen();
        expect(await log.append(stream, events, 'no_stream')).toEqual(first);
        expect(await eventsOf(log.readStream(stream))).toHaveLength(2);
      });

      it('also when many ask at once', async () => {
        const stream = aStream();
        const events = someEvents(2);
        const answers = await Promise.all(
          Array.from({ length: 10 }, () => log.append(stream, events, 'no_stream')),
        );
        expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
        expect(await eventsOf(log.readStream(stream))).toHaveLength(2);
      });

      it('recognises an id in capital letters', async () => {
        const stream = aStream();
        const event = anEvent();
        const first = await log.append(stream, [event], 'no_stream');
        expect(await log.append(stream, [{ ...event, id: event.id.toUpperCase() }], 'no_stream')).toEqual(
          first,
        );
      });

      it('takes the beginning of the stored list for the same, and answers where that ends', async () => {
        const stream = aStream();
        const events = someEvents(3);
        await log.append(stream, events, 'no_stream');
        const stored = await eventsOf(log.readStream(stream));
        const again = await log.append(stream, events.slice(0, 2), 'no_stream');
        expect(again).toEqual({ revision: 1, position: stored[1]?.position });
        expect(await eventsOf(log.readStream(stream))).toHaveLength(3);
      });

      it.each<[string, (events: readonly NewEvent[]) => readonly NewEvent[], 'no_stream' | number]>([
        ['a longer list', (events) => [...events, anEvent()], 'no_stream'],
        ['another order', (events) => events.toReversed(), 'no_stream'],
        ['another last event', (events) => [...events.slice(0, -1), anEvent()], 'no_stream'],
        ['the same ids at another revision', (events) => events, 0],
        ['the end of the stored list', (events) => events.slice(1), 'no_stream'],
      ])('does not take %s for the same', async (_, change, expected) => {
        const stream = aStream();
        const events = someEvents(3);
        await log.append(stream, events, 'no_stream');
        await expect(log.append(stream, change(events), expected)).rejects.toMatchObject({
          code: 'stream_changed',
          more: { actual: 2 },
        });
        expect(idsOf(await eventsOf(log.readStream(stream)))).toEqual(idsOf(events));
      });

      it('knows the same ids in another stream as another append', async () => {
        const [one, other] = [aStream(), aStream()];
        const events = someEvents(2);
        const first = await log.append(one, events, 'no_stream');
        const second = await log.append(other, events, 'no_stream');
        expect(second.position > first.position).toBe(true);
        expect(await eventsOf(log.readStream(other))).toHaveLength(2);
      });
    });

    describe('positions', () => {
      it('grow as text, across every change of length', async () => {
        const [one, other] = [aStream(), aStream()];
        for (let i = 0; i < 12; i += 1) {
          await log.append(one, someEvents(1), i === 0 ? 'no_stream' : i - 1);
        }
        await grow(log, other, 1_000);
        await grow(log, one, 3, 11);
        const events = await eventsOf(log.readAll());
        expect(events).toHaveLength(1_015);
        expect(isIncreasing(events)).toBe(true);
        expect(events.map((event) => event.position)).toEqual(
          events.map((event) => event.position).toSorted(),
        );
      });

      it('agree in every way of reading', async () => {
        const tenantId = randomUUID();
        await log.append(streams.tenant(tenantId), someEvents(3), 'no_stream');
        const stream = await eventsOf(log.readStream(streams.tenant(tenantId)));
        expect(await eventsOf(log.readAll())).toEqual(stream);
        expect(await eventsOf(log.readTenant(tenantId))).toEqual(stream);
      });
    });

    describe('readStream', () => {
      it('gives nothing of a stream that is not there', async () => {
        await log.append(aStream(), someEvents(1), 'no_stream');
        expect(await eventsOf(log.readStream(aStream()))).toEqual([]);
      });

      it('gives only this stream, although another name begins the same', async () => {
        const stream = aStream();
        const events = someEvents(2);
        await log.append(`${stream}-more`, someEvents(2), 'no_stream');
        await log.append(stream, events, 'no_stream');
        expect(idsOf(await eventsOf(log.readStream(stream)))).toEqual(idsOf(events));
      });

      it('begins just after a revision, and is empty after the last', async () => {
        const stream = aStream();
        const events = await grow(log, stream, 5);
        expect(idsOf(await eventsOf(log.readStream(stream, -1)))).toEqual(idsOf(events));
        expect(idsOf(await eventsOf(log.readStream(stream, 2)))).toEqual(idsOf(events.slice(3)));
        expect(await eventsOf(log.readStream(stream, 4))).toEqual([]);
        expect(await eventsOf(log.readStream(stream, 99))).toEqual([]);
      });

      it('gives a long stream in bounded batches, none of them empty, in order', async () => {
        const stream = aStream();
        const events = await grow(log, stream, 2_500);
        const sizes: number[] = [];
        const seen: LoggedEvent[] = [];
        for await (const batch of log.readStream(stream)) {
          sizes.push(batch.length);
          seen.push(...batch);
        }
        expect(idsOf(seen)).toEqual(idsOf(events));
        expect(seen.map((event) => event.revision)).toEqual(events.map((_, i) => i));
        expect(Math.max(...sizes)).toBeLessThanOrEqual(1_000);
        expect(Math.min(...sizes)).toBeGreaterThan(0);
      });

      it('can be left in the middle, and several can read at once', async () => {
        const stream = aStream();
        const events = await grow(log, stream, 1_500);
        for await (const batch of log.readStream(stream)) {
          expect(batch[0]?.id).toBe(events[0]?.id);
          break;
        }
        const all = await Promise.all([1, 2, 3].map(() => eventsOf(log.readStream(stream))));
        for (const seen of all) expect(idsOf(seen)).toEqual(idsOf(events));
        await log.append(stream, someEvents(1), 1_499);
        expect(await eventsOf(log.readStream(stream, 1_499))).toHaveLength(1);
      });
    });

    describe('readTenant', () => {
      const twoStreams = async (tenantId: string, rounds: number): Promise<readonly string[]> => {
        const written: string[] = [];
        for (let i = 0; i < rounds; i += 1) {
          const expected = i === 0 ? 'no_stream' : i - 1;
          for (const stream of [streams.activity(tenantId), streams.tenant(tenantId)]) {
            const event = anEvent();
            await log.append(stream, [event], expected);
            written.push(event.id);
          }
          await log.append(aStream(), someEvents(1), 'no_stream');
        }
        return written;
      };

      it('merges both streams of the tenant by position and shows no other tenant', async () => {
        const tenantId = randomUUID();
        const written = await twoStreams(tenantId, 10);
        const events = await eventsOf(log.readTenant(tenantId));
        expect(idsOf(events)).toEqual(written);
        expect(isIncreasing(events)).toBe(true);
      });

      it('begins just after any position, also one of another tenant', async () => {
        const tenantId = randomUUID();
        await twoStreams(tenantId, 5);
        const mine = await eventsOf(log.readTenant(tenantId));
        for (const { position } of await eventsOf(log.readAll())) {
          const rest = await eventsOf(log.readTenant(tenantId, { after: position }));
          expect(idsOf(rest)).toEqual(idsOf(mine.filter((event) => event.position > position)));
        }
      });

      it('merges streams of very different lengths without a gap', async () => {
        const tenantId = randomUUID();
        await log.append(streams.tenant(tenantId), someEvents(2), 'no_stream');
        await grow(log, streams.activity(tenantId), 1_300);
        await grow(log, streams.tenant(tenantId), 700, 1);
        await grow(log, streams.activity(tenantId), 100, 1_299);
        const events = await eventsOf(log.readTenant(tenantId));
        expect(idsOf(events)).toEqual(idsOf(await eventsOf(log.readAll())));
        expect(events).toHaveLength(2_102);
      });

      const large = (): NewEvent => {
        const room = LARGEST_APPEND - Buffer.byteLength(JSON.stringify({ text: '' }));
        return anEvent({ text: 'x'.repeat(room) });
      };

      /** Whoever makes no headway is stopped: this fails, instead of going on for ever. */
      const readInTime = async (tenantId: string, after?: string): Promise<readonly LoggedEvent[]> => {
        const abort = new AbortController();
        const timer = setTimeout(() => abort.abort(), 8_000);
        const events = await eventsOf(
          log.readTenant(tenantId, { ...(after === undefined ? {} : { after }), signal: abort.signal }),
        );
        clearTimeout(timer);
        expect(abort.signal.aborted).toBe(false);
        return events;
      };

      it.each([
        ['large, then small', ['tenant', 'tenant']],
        ['large, then small of the other', ['tenant', 'activity']],
        ['large of the other, then small', ['activity', 'tenant']],
        ['large, then small, of the other', ['activity', 'activity']],
      ] as const)('passes events of the largest size: %s', async (_, kinds) => {
        const tenantId = randomUUID();
        const heads = new Map<string, number>();
        const ids: string[] = [];
        const put = async (kind: 'tenant' | 'activity', event: NewEvent): Promise<void> => {
          const stream = streams[kind](tenantId);
          const { revision } = await log.append(stream, [event], heads.get(stream) ?? 'no_stream');
          heads.set(stream, revision);
          ids.push(event.id);
        };
        for (let round = 0; round < 2; round += 1) {
          await put(kinds[0], large());
          await put(kinds[1], anEvent());
        }
        await put(kinds[0], large());
        const events = await readInTime(tenantId);
        expect(idsOf(events)).toEqual(ids);
        for (const [i, { position }] of events.entries())
          expect(idsOf(await readInTime(tenantId, position))).toEqual(ids.slice(i + 1));
      });

      it('is empty for a tenant that is not there', async () => {
        await log.append(aStream(), someEvents(1), 'no_stream');
        expect(await eventsOf(log.readTenant(randomUUID()))).toEqual([]);
      });

      it('follows what comes in both streams, and only in them', async () => {
        const tenantId = randomUUID();
        const before = await twoStreams(tenantId, 2);
        const tail = following((signal) => log.readTenant(tenantId, { follow: true, signal }));
        await until(() => tail.seen.length === 4);
        await log.append(aStream(), someEvents(5), 'no_stream');
        const later = [...someEvents(2), ...someEvents(2)];
        await log.append(streams.activity(tenantId), later.slice(0, 2), 1);
        await log.append(streams.tenant(tenantId), later.slice(2), 1);
        await until(() => tail.seen.length >= 8);
        await tail.stop();
        expect(idsOf(tail.seen)).toEqual([...before, ...idsOf(later)]);
      });

      it('follows a tenant that is not there yet', async () => {
        const tenantId = randomUUID();
        const tail = following((signal) => log.readTenant(tenantId, { follow: true, signal }));
        const events = someEvents(2);
        await log.append(streams.tenant(tenantId), events, 'no_stream');
        await until(() => tail.seen.length >= 2);
        await tail.stop();
        expect(idsOf(tail.seen)).toEqual(idsOf(events));
      });
    });

    describe('readAll', () => {
      it('gives the whole log in order, in bounded batches, none of them empty', async () => {
        const [one, other] = [aStream(), aStream()];
        const written = [
          ...(await grow(log, one, 800)),
          ...(await grow(log, other, 1_000)),
          ...(await grow(log, one, 700, 799)),
        ];
        const sizes: number[] = [];
        const seen: LoggedEvent[] = [];
        for await (const batch of log.readAll()) {
          sizes.push(batch.length);
          seen.push(...batch);
        }
        expect(idsOf(seen)).toEqual(idsOf(written));
        expect(Math.max(...sizes)).toBeLessThanOrEqual(1_000);
        expect(Math.min(...sizes)).toBeGreaterThan(0);
      });

      it('bounds a batch by its bytes too', async () => {
        const stream = aStream();
        const text = 'x'.repeat(700_000);
        for (let i = 0; i < 8; i += 1)
          await log.append(stream, [anEvent({ text })], i === 0 ? 'no_stream' : i - 1);
        let count = 0;
        for await (const batch of log.readAll()) {
          count += batch.length;
          expect(batch.length).toBeLessThanOrEqual(6);
        }
        expect(count).toBe(8);
      });

      it('begins just after any position', async () => {
        await grow(log, aStream(), 6);
        await grow(log, aStream(), 6);
        const all = await eventsOf(log.readAll());
        for (const [i, { position }] of all.entries())
          expect(idsOf(await eventsOf(log.readAll({ after: position })))).toEqual(idsOf(all.slice(i + 1)));
      });

      it('is empty when the log is', async () => {
        expect(await eventsOf(log.readAll())).toEqual([]);
      });

      it('follows an empty log from its first event on', async () => {
        const tail = following((signal) => log.readAll({ follow: true, signal }));
        const events = await grow(log, aStream(), 3);
        await until(() => tail.seen.length >= 3);
        await tail.stop();
        expect(idsOf(tail.seen)).toEqual(idsOf(events));
      });

      it('follows from a position in the middle', async () => {
        const stream = aStream();
        await grow(log, stream, 4);
        const all = await eventsOf(log.readAll());
        const tail = following((signal) => log.readAll({ after: all[1]!.position, follow: true, signal }));
        const later = await grow(log, stream, 2, 3);
        await until(() => tail.seen.length >= 4);
        await tail.stop();
        expect(idsOf(tail.seen)).toEqual([...idsOf(all.slice(2)), ...idsOf(later)]);
      });

      it('follows from beyond the end without what lies before that', async () => {
        const { log: longer, streams: its } = await openOne();
        await grow(log, aStream(), 1);
        await grow(longer, aStream(its), 40);
        const { position: beyond } = (await longer.head())!;
        const tail = following((signal) => log.readAll({ after: beyond, follow: true, signal }));
        const whole = following((signal) => log.readAll({ follow: true, signal }));
        await grow(log, aStream(), 2);
        await until(() => whole.seen.length === 3);
        await Promise.all([tail.stop(), whole.stop()]);
        expect(tail.seen.filter(({ position }) => position <= beyond)).toEqual([]);
      });

      it('ends when it is aborted: before it begins, while it waits, and while a batch is being worked on', async () => {
        await grow(log, aStream(), 3);
        expect(await eventsOf(log.readAll({ follow: true, signal: AbortSignal.abort() }))).toEqual([]);

        const waiting = following((signal) => log.readAll({ follow: true, signal }));
        await until(() => waiting.seen.length === 3);
        await waiting.stop();

        const abort = new AbortController();
        let batches = 0;
        for await (const _ of log.readAll({ follow: true, signal: abort.signal })) {
          batches += 1;
          abort.abort();
        }
        expect(batches).toBe(1);
      });

      it(
        seeded('follows each event exactly once and in order while many append'),
        () =>
          fc.assert(
            fc.asyncProperty(
              fc.array(fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 15 }), {
                minLength: 1,
                maxLength: 4,
              }),
              fc.integer({ min: 0, max: 20 }),
              async (writers, head) => {
                const { log: own, streams: its } = await openOne();
                if (head > 0) await grow(own, aStream(its), head);
                const early = following((signal) => own.readAll({ follow: true, signal }));
                const appendAll = async (sizes: readonly number[]): Promise<void> => {
                  const stream = aStream(its);
                  let revision = -1;
                  for (const size of sizes) {
                    const expected = revision < 0 ? 'no_stream' : revision;
                    ({ revision } = await own.append(stream, someEvents(size), expected));
                  }
                };
                const total = head + writers.flat().reduce((sum, size) => sum + size, 0);
                const appending = Promise.all(writers.map(appendAll));
                const late = following((signal) => own.readAll({ follow: true, signal }));
                await appending;
                await until(() => early.seen.length >= total && late.seen.length >= total);
                await Promise.all([early.stop(), late.stop()]);
                const stored = idsOf(await eventsOf(own.readAll()));
                expect(stored).toHaveLength(total);
                expect(idsOf(early.seen)).toEqual(stored);
                expect(idsOf(late.seen)).toEqual(stored);
                opened.delete(own);
                await own.close();
              },
            ),
            { seed, numRuns: 10 },
          ),
        60_000,
      );
    });

    describe('head and eventIdAt', () => {
      it('have nothing in an empty log', async () => {
        expect(await log.head()).toBeUndefined();
      });

      it('name the last event and any other', async () => {
        const stream = aStream();
        const events = await grow(log, stream, 12);
        const stored = await eventsOf(log.readAll());
        expect(await log.head()).toEqual({ position: stored.at(-1)?.position, eventId: events.at(-1)?.id });
        for (const { id, position } of stored) expect(await log.eventIdAt(position)).toBe(id);
      });

      it('know the append that was just answered', async () => {
        for (let i = 0; i < 20; i += 1) {
          const [event] = someEvents(1);
          const { position } = await log.append(aStream(), [event!], 'no_stream');
          expect(await log.head()).toEqual({ position, eventId: event!.id });
        }
      });

      it('know nothing at a position of another, longer log', async () => {
        const { log: longer, streams: its } = await openOne();
        await grow(log, aStream(), 2);
        await grow(longer, aStream(its), 30);
        const beyond = (await longer.head())!.position;
        expect(await log.eventIdAt(beyond)).toBeUndefined();
        expect(await eventsOf(log.readAll({ after: beyond }))).toEqual([]);
      });
    });

    describe('continuity', () => {
      const knownIn = async () => {
        await grow(log, aStream(), 12);
        return (await eventsOf(log.readAll())).map(({ id, position }) => ({ eventId: id, position }));
      };

      it('is whole while a known event is where it was, also of an empty log', async () => {
        expect(await log.continuity()).toBe('whole');
        for (const known of await knownIn()) expect(await log.continuity(known)).toBe('whole');
        await reopen();
        expect(await log.continuity(await log.head())).toBe('whole');
      });

      it('is broken by another event in its place, and by an end before it', async () => {
        const [first, , third] = await knownIn();
        expect(await log.continuity({ eventId: first!.eventId, position: third!.position })).toBe('set_back');
        const beyond = String(BigInt(third!.position) + 10n ** 12n).padStart(third!.position.length, '0');
        expect(await log.continuity({ eventId: first!.eventId, position: beyond })).toBe('set_back');
      });

      it('is never doubted while many write and somebody asks about what was read or written just now', async () => {
        let isOver = false;
        const writing = Array.from({ length: 4 }, async () => {
          const stream = aStream();
          for (let revision = -1; revision < 150; revision += 3)
            await log.append(stream, someEvents(3), revision < 0 ? 'no_stream' : revision, 10_000);
        });
        const tail = following((signal) => log.readAll({ follow: true, signal }));
        const found = new Set<string>();
        const asking = (async () => {
          while (!isOver) {
            const last = tail.seen.at(-1);
            const read = last === undefined ? undefined : { eventId: last.id, position: last.position };
            for (const known of [read, await log.head()]) found.add(await log.continuity(known));
            await letOthersGo();
          }
        })();
        await Promise.all(writing);
        isOver = true;
        await asking;
        await tail.stop();
        expect([...found]).toEqual(['whole']);
      });
    });

    describe('reading', () => {
      /** Takes so many batches and leaves. */
      const leaving = async (reading: AsyncIterable<unknown>, batches: number): Promise<void> => {
        let taken = 0;
        for await (const _ of reading) {
          taken += 1;
          if (taken === batches) break;
        }
      };
      const ALL = Infinity;

      it.each<[string, (tenantId: string) => Promise<unknown>]>([
        ['the whole log', () => leaving(log.readAll(), ALL)],
        ['the whole log, left early', () => leaving(log.readAll(), 1)],
        ['the whole log, followed and left', () => leaving(log.readAll({ follow: true }), 1)],
        ['a tenant', (tenantId) => leaving(log.readTenant(tenantId), ALL)],
        ['a tenant, left early', (tenantId) => leaving(log.readTenant(tenantId), 1)],
        ['a tenant, followed and left', (tenantId) => leaving(log.readTenant(tenantId, { follow: true }), 1)],
        ['a stream', (tenantId) => leaving(log.readStream(streams.tenant(tenantId)), ALL)],
        ['a stream, left early', (tenantId) => leaving(log.readStream(streams.tenant(tenantId)), 1)],
        ['a stream that is not there', () => leaving(log.readStream(aStream()), ALL)],
        ['a distance', async () => log.distance(undefined, (await log.head())!.position)],
        ['the continuity', async () => log.continuity(await log.head())],
      ])('%s leaves nothing open', async (_, read) => {
        const tenantId = randomUUID();
        await grow(log, streams.tenant(tenantId), 1_500);
        await grow(log, streams.activity(tenantId), 1_500);
        for (let i = 0; i < 3; i += 1) await read(tenantId);
        await until(() => (openReads?.() ?? 0) === 0, 5_000, 'no read is left open');
      });
    });

    describe('opened again', () => {
      it('has the same identity, which no other log has', async () => {
        const identity = await log.identity();
        expect(identity).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
        await log.append(aStream(), someEvents(1), 'no_stream');
        expect(await log.identity()).toBe(identity);
        await reopen();
        expect(await log.identity()).toBe(identity);
        expect(await (await openOne()).log.identity()).not.toBe(identity);
      });

      it('has every event, and goes on', async () => {
        const stream = aStream();
        await grow(log, stream, 20);
        const before = await eventsOf(log.readAll());
        await reopen();
        expect(await eventsOf(log.readAll())).toEqual(before);
        const { position } = await log.append(stream, someEvents(1), 19);
        expect(position > before.at(-1)!.position).toBe(true);
      });
    });

    it(
      seeded('keeps any JSON as it is'),
      async () => {
        const stream = aStream();
        let revision = -1;
        const json = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue({ stringUnit: 'binary' }));
        await fc.assert(
          fc.asyncProperty(json, json, async (data, metadata) => {
            const event = JSON.parse(JSON.stringify({ data, metadata })) as Pick<
              NewEvent,
              'data' | 'metadata'
            >;
            const after = revision;
            const appended = await log.append(
              stream,
              [anEvent(event.data, event)],
              after < 0 ? 'no_stream' : after,
            );
            revision = appended.revision;
            const [stored] = await eventsOf(log.readStream(stream, after));
            expect(stored).toMatchObject({ data: event.data, metadata: event.metadata });
          }),
          { seed, numRuns: 30 },
        );
      },
      60_000,
    );

    it('keeps unusual letters in names and data', async () => {
      const text = 'Grüße, 世界 👩‍👩‍👧 \u0000 \u2028 \ufeff "quoted" \\ \ud800';
      const stream = streams.tenant('Grüße 世界');
      await log.append(stream, [anEvent({ text, [text]: [text] }, { type: 'Grüße世界' })], 'no_stream');
      const [stored] = await eventsOf(log.readStream(stream));
      expect(stored).toMatchObject({ stream, type: 'Grüße世界', data: { text, [text]: [text] } });
    });

    describe('close', () => {
      const resources = (): Map<string, number> => {
        const counts = new Map<string, number>();
        for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
        return counts;
      };

      it('leaves nothing behind that keeps the process alive, and may be called twice', async () => {
        const before = resources();
        const { log: own, streams: its } = await openOne();
        await grow(own, aStream(its), 600);
        for await (const _ of own.readAll()) break;
        const tail = following((signal) => own.readAll({ follow: true, signal }));
        await until(() => tail.seen.length === 600);
        await tail.stop();
        opened.delete(own);
        await own.close();
        await own.close();
        await until(() => [...resources()].every(([kind, count]) => count <= (before.get(kind) ?? 0)));
      });

      it('ends those who follow', async () => {
        const before = resources();
        const { log: own, streams: its } = await openOne();
        await grow(own, aStream(its), 2);
        const tails = [
          following((signal) => own.readAll({ follow: true, signal })),
          following((signal) => own.readTenant(randomUUID(), { follow: true, signal })),
        ];
        await until(() => tails[0]!.seen.length === 2);
        opened.delete(own);
        await own.close();
        await Promise.all(tails.map((tail) => tail.ended));
        await until(() => [...resources()].every(([kind, count]) => count <= (before.get(kind) ?? 0)));
      });

      it('refuses what comes later, as certainly not written', async () => {
        const { log: own } = await openOne();
        opened.delete(own);
        await own.close();
        expect(await refusedWith(own.append(aStream(), someEvents(1), 'no_stream'))).toBe('log_unavailable');
      });
    });
  });
};
