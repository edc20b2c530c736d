import { randomUUID } from 'node:crypto';
import type { LoggedEvent } from '../../../src/event-log/event-log';
import { eventsOf, idsOf, someEvents } from '../../support/events';
import { grow, isIncreasing, type GivenLog } from './given-log';

export const readStreamContract = (given: GivenLog): void => {
  describe('positions', () => {
    it('increase as text, across every change of length', async () => {
      const [one, other] = [given.aStream(), given.aStream()];
      for (let i = 0; i < 12; i += 1) {
        await given.log.append(one, someEvents(1), i === 0 ? 'no_stream' : i - 1);
      }
      await grow(given.log, other, 1_000);
      await grow(given.log, one, 3, 11);
      const events = await eventsOf(given.log.readAll());
      expect(events).toHaveLength(1_015);
      expect(isIncreasing(events)).toBe(true);
      expect(events.map((event) => event.position)).toEqual(events.map((event) => event.position).toSorted());
    });

    it('are the same in every kind of read', async () => {
      const tenantId = randomUUID();
      await given.log.append(given.streams.tenant(tenantId), someEvents(3), 'no_stream');
      const stream = await eventsOf(given.log.readStream(given.streams.tenant(tenantId)));
      expect(await eventsOf(given.log.readAll())).toEqual(stream);
      expect(await eventsOf(given.log.readTenant(tenantId))).toEqual(stream);
    });
  });

  describe('readStream', () => {
    it('yields nothing for a stream that does not exist', async () => {
      await given.log.append(given.aStream(), someEvents(1), 'no_stream');
      expect(await eventsOf(given.log.readStream(given.aStream()))).toEqual([]);
    });

    it('yields only this stream, even if another name starts the same', async () => {
      const stream = given.aStream();
      const events = someEvents(2);
      await given.log.append(`${stream}-more`, someEvents(2), 'no_stream');
      await given.log.append(stream, events, 'no_stream');
      expect(idsOf(await eventsOf(given.log.readStream(stream)))).toEqual(idsOf(events));
    });

    it('starts just after a revision, and is empty after the last', async () => {
      const stream = given.aStream();
      const events = await grow(given.log, stream, 5);
      expect(idsOf(await eventsOf(given.log.readStream(stream, -1)))).toEqual(idsOf(events));
      expect(idsOf(await eventsOf(given.log.readStream(stream, 2)))).toEqual(idsOf(events.slice(3)));
      expect(await eventsOf(given.log.readStream(stream, 4))).toEqual([]);
      expect(await eventsOf(given.log.readStream(stream, 99))).toEqual([]);
    });

    it('yields a long stream in bounded batches, none of them empty, in order', async () => {
      const stream = given.aStream();
      const events = await grow(given.log, stream, 1_500);
      const sizes: number[] = [];
      const seen: LoggedEvent[] = [];
      for await (const batch of given.log.readStream(stream)) {
        sizes.push(batch.length);
        seen.push(...batch);
      }
      expect(idsOf(seen)).toEqual(idsOf(events));
      expect(seen.map((event) => event.revision)).toEqual(events.map((_, i) => i));
      expect(Math.max(...sizes)).toBeLessThanOrEqual(1_000);
      expect(Math.min(...sizes)).toBeGreaterThan(0);
    });

    it('can be abandoned halfway, and several can read at once', async () => {
      const stream = given.aStream();
      const events = await grow(given.log, stream, 1_100);
      for await (const batch of given.log.readStream(stream)) {
        expect(batch[0]?.id).toBe(events[0]?.id);
        break;
      }
      const all = await Promise.all([1, 2, 3].map(() => eventsOf(given.log.readStream(stream))));
      for (const seen of all) expect(idsOf(seen)).toEqual(idsOf(events));
      await given.log.append(stream, someEvents(1), 1_099);
      expect(await eventsOf(given.log.readStream(stream, 1_099))).toHaveLength(1);
    });
  });
};
