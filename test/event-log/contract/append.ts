import { MAX_APPEND_BYTES, type NewEvent } from '../../../src/event-log/event-log';
import { anEvent, eventsOf, idsOf, someEvents } from '../../support/events';
import { refusedWith } from '../../support/waiting';
import type { GivenLog } from './given-log';

const NOTHING = 'There is nothing';

export const appendContract = (given: GivenLog): void => {
  describe('append', () => {
    it('creates a stream and continues at its last revision', async () => {
      const stream = given.aStream();
      const first = await given.log.append(stream, someEvents(1), 'no_stream');
      const second = await given.log.append(stream, someEvents(3), 0);
      expect([first.revision, second.revision]).toEqual([0, 3]);
      expect(first.position < second.position).toBe(true);
      const events = await eventsOf(given.log.readStream(stream));
      expect(events.map((event) => event.revision)).toEqual([0, 1, 2, 3]);
      expect(events.at(-1)?.position).toBe(second.position);
    });

    it('stores everything that it was given', async () => {
      const stream = given.aStream();
      const event = anEvent(
        { a: [1, 'two', null, { three: 3.5 }] },
        { metadata: { at: 'now', deep: { x: [] } } },
      );
      const before = Date.now();
      const { position } = await given.log.append(stream, [event], 'no_stream');
      const [stored] = await eventsOf(given.log.readStream(stream));
      expect(stored).toMatchObject({ ...event, stream, revision: 0, position });
      expect(Date.parse(stored!.recordedAt)).toBeGreaterThanOrEqual(before - 1_000);
      expect(new Date(stored!.recordedAt).toISOString()).toBe(stored!.recordedAt);
    });

    it.each([
      ['past', '2021-02-03T04:05:06.789Z'],
      ['future', '9999-12-31T23:59:59.999Z'],
    ])(
      'keeps a time in the %s that another log recorded, and uses its own clock otherwise',
      async (_, recordedAt) => {
        const stream = given.aStream();
        const metadata = { at: '2020-02-03T04:05:06.789Z', deep: { x: [] } };
        const copied = anEvent({ a: 1 }, { metadata, recordedAt });
        await given.log.append(stream, [copied, anEvent({}, { metadata })], 'no_stream');
        const stored = await eventsOf(given.log.readStream(stream));
        expect(stored[0]).toMatchObject({ recordedAt: copied.recordedAt, data: { a: 1 } });
        expect(stored.map((event) => event.metadata)).toEqual([metadata, metadata]);
        expect(Math.abs(Date.parse(stored[1]!.recordedAt) - Date.now())).toBeLessThan(60_000);
        expect(await given.log.append(stream, [copied], 'no_stream')).toMatchObject({ revision: 0 });
      },
    );

    it.each(['yesterday', '2021-02-03', '2021-02-03T04:05:06Z', ''])(
      'refuses %j as the recorded time of an event of another log',
      async (recordedAt) => {
        const stream = given.aStream();
        await expect(given.log.append(stream, [anEvent({}, { recordedAt })], 'no_stream')).rejects.toThrow(
          'not a time as a log writes it',
        );
        expect(await eventsOf(given.log.readStream(stream))).toEqual([]);
      },
    );

    it('refuses no_stream if the stream exists, and reports its revision', async () => {
      const stream = given.aStream();
      await given.log.append(stream, someEvents(2), 'no_stream');
      await expect(given.log.append(stream, someEvents(1), 'no_stream')).rejects.toMatchObject({
        code: 'stream_changed',
        more: { actual: 1 },
      });
    });

    it.each([0, 1, 3, 99])('refuses revision %i if the stream is at 2', async (expected) => {
      const stream = given.aStream();
      await given.log.append(stream, someEvents(3), 'no_stream');
      await expect(given.log.append(stream, someEvents(1), expected)).rejects.toMatchObject({
        code: 'stream_changed',
        more: { actual: 2 },
      });
      expect(await eventsOf(given.log.readStream(stream))).toHaveLength(3);
    });

    it('refuses a revision of a stream that does not exist', async () => {
      await expect(given.log.append(given.aStream(), someEvents(1), 0)).rejects.toMatchObject({
        code: 'stream_changed',
        more: { actual: -1 },
      });
      expect(await given.log.head()).toBeUndefined();
    });

    it('writes all of the events or none', async () => {
      const stream = given.aStream();
      await given.log.append(stream, someEvents(2), 'no_stream');
      const head = await given.log.head();
      const tooLarge = [...someEvents(3), anEvent({ text: 'x'.repeat(MAX_APPEND_BYTES) })];
      expect(await refusedWith(given.log.append(stream, tooLarge, 1))).toBe('event_too_large');
      expect(await refusedWith(given.log.append(stream, someEvents(3), 0))).toBe('stream_changed');
      expect(await eventsOf(given.log.readStream(stream))).toHaveLength(2);
      expect(await given.log.head()).toEqual(head);
    });

    it('refuses an empty list', async () => {
      const stream = given.aStream();
      await expect(given.log.append(stream, [], 'no_stream')).rejects.toThrow(NOTHING);
      expect(await given.log.head()).toBeUndefined();
    });

    it('refuses more bytes than its largest append, and still works', async () => {
      const stream = given.aStream();
      const half = 'x'.repeat(MAX_APPEND_BYTES / 2);
      const both = [anEvent({ half }), anEvent({ half })];
      expect(await refusedWith(given.log.append(stream, both, 'no_stream'))).toBe('event_too_large');
      expect(await eventsOf(given.log.readStream(stream))).toEqual([]);
      await given.log.append(stream, [anEvent({ half })], 'no_stream');
      expect((await given.log.append(stream, [anEvent({ half })], 0)).revision).toBe(1);
    });

    it('accepts exactly its largest append, counted in bytes', async () => {
      const stream = given.aStream();
      const { type, metadata } = anEvent({});
      const frame = JSON.stringify({ text: '' }).length + JSON.stringify(metadata ?? {}).length;
      const room = MAX_APPEND_BYTES - frame - 2 * type.length;
      const text = 'ä'.repeat(Math.floor(room / 2)) + 'x'.repeat(room % 2);
      expect(await refusedWith(given.log.append(stream, [anEvent({ text: `${text}x` })], 'no_stream'))).toBe(
        'event_too_large',
      );
      await given.log.append(stream, [anEvent({ text })], 'no_stream');
      const [stored] = await eventsOf(given.log.readStream(stream));
      expect((stored!.data as { text: string }).text === text).toBe(true);
    });

    it('lets exactly one of many writers that expect the same revision win', async () => {
      const stream = given.aStream();
      const winners: NewEvent[] = [];
      for (const expected of ['no_stream', 1, 3, 5] as const) {
        const attempts = Array.from({ length: 20 }, () => someEvents(2));
        const codes = await Promise.all(
          attempts.map((events) => refusedWith(given.log.append(stream, events, expected))),
        );
        expect(codes.filter((code) => code === 'stream_changed')).toHaveLength(19);
        winners.push(...attempts[codes.indexOf('no refusal')]!);
      }
      expect(idsOf(await eventsOf(given.log.readStream(stream)))).toEqual(idsOf(winners));
    });
  });
};
