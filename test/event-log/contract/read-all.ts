import * as fc from 'fast-check';
import type { LoggedEvent } from '../../../src/event-log/event-log';
import { anEvent, eventsOf, idsOf, someEvents } from '../../support/events';
import { seed, seeded } from '../../support/property';
import { until } from '../../support/waiting';
import { following, grow, type GivenLog } from './given-log';

export const readAllContract = (given: GivenLog): void => {
  describe('readAll', () => {
    it('yields the whole log in order, in bounded batches, none of them empty', async () => {
      const [one, other] = [given.aStream(), given.aStream()];
      const written = [
        ...(await grow(given.log, one, 500)),
        ...(await grow(given.log, other, 600)),
        ...(await grow(given.log, one, 400, 499)),
      ];
      const sizes: number[] = [];
      const seen: LoggedEvent[] = [];
      for await (const batch of given.log.readAll()) {
        sizes.push(batch.length);
        seen.push(...batch);
      }
      expect(idsOf(seen)).toEqual(idsOf(written));
      expect(Math.max(...sizes)).toBeLessThanOrEqual(1_000);
      expect(Math.min(...sizes)).toBeGreaterThan(0);
    });

    it('bounds a batch by its bytes as well', async () => {
      const stream = given.aStream();
      const text = 'x'.repeat(700_000);
      for (let i = 0; i < 8; i += 1)
        await given.log.append(stream, [anEvent({ text })], i === 0 ? 'no_stream' : i - 1);
      let count = 0;
      for await (const batch of given.log.readAll()) {
        count += batch.length;
        expect(batch.length).toBeLessThanOrEqual(6);
      }
      expect(count).toBe(8);
    });

    it('starts just after any position', async () => {
      await grow(given.log, given.aStream(), 6);
      await grow(given.log, given.aStream(), 6);
      const all = await eventsOf(given.log.readAll());
      for (const [i, { position }] of all.entries())
        expect(idsOf(await eventsOf(given.log.readAll({ after: position })))).toEqual(
          idsOf(all.slice(i + 1)),
        );
    });

    it('is empty when the log is', async () => {
      expect(await eventsOf(given.log.readAll())).toEqual([]);
    });

    it('follows an empty log from its first event on', async () => {
      const tail = following((signal) => given.log.readAll({ follow: true, signal }));
      const events = await grow(given.log, given.aStream(), 3);
      await until(() => tail.seen.length >= 3);
      await tail.stop();
      expect(idsOf(tail.seen)).toEqual(idsOf(events));
    });

    it('follows from a position in the middle', async () => {
      const stream = given.aStream();
      await grow(given.log, stream, 4);
      const all = await eventsOf(given.log.readAll());
      const tail = following((signal) =>
        given.log.readAll({ after: all[1]!.position, follow: true, signal }),
      );
      const later = await grow(given.log, stream, 2, 3);
      await until(() => tail.seen.length >= 4);
      await tail.stop();
      expect(idsOf(tail.seen)).toEqual([...idsOf(all.slice(2)), ...idsOf(later)]);
    });

    it('follows what is appended while a batch is handled, without another append', async () => {
      const stream = given.aStream();
      await grow(given.log, stream, 1);
      const seen: string[] = [];
      for await (const batch of given.log.readAll({ follow: true })) {
        seen.push(...idsOf(batch));
        if (seen.length === 2) break;
        await grow(given.log, stream, 1, 0);
      }
    });

    it('follows from beyond the end without the events before it', async () => {
      const { log: longer, streams: its } = await given.openOne();
      await grow(given.log, given.aStream(), 1);
      await grow(longer, given.aStream(its), 40);
      const { position: beyond } = (await longer.head())!;
      const tail = following((signal) => given.log.readAll({ after: beyond, follow: true, signal }));
      const whole = following((signal) => given.log.readAll({ follow: true, signal }));
      await grow(given.log, given.aStream(), 2);
      await until(() => whole.seen.length === 3);
      await Promise.all([tail.stop(), whole.stop()]);
      expect(tail.seen.filter(({ position }) => position <= beyond)).toEqual([]);
    });

    it('ends when it is aborted: before it starts, while it waits, and while a batch is being processed', async () => {
      await grow(given.log, given.aStream(), 3);
      expect(await eventsOf(given.log.readAll({ follow: true, signal: AbortSignal.abort() }))).toEqual([]);

      const waiting = following((signal) => given.log.readAll({ follow: true, signal }));
      await until(() => waiting.seen.length === 3);
      await waiting.stop();

      const abort = new AbortController();
      let batches = 0;
      for await (const _ of given.log.readAll({ follow: true, signal: abort.signal })) {
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
              const { log: own, streams: its } = await given.openOne();
              if (head > 0) await grow(own, given.aStream(its), head);
              const early = following((signal) => own.readAll({ follow: true, signal }));
              const appendAll = async (sizes: readonly number[]): Promise<void> => {
                const stream = given.aStream(its);
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
              await given.close(own);
            },
          ),
          { seed, numRuns: 10 },
        ),
      60_000,
    );
  });
};
