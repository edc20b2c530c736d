import type { NewEvent } from '../../../src/event-log/event-log';
import { anEvent, eventsOf, idsOf, someEvents } from '../../support/events';
import type { GivenLog } from './given-log';

export const repeatedAppendContract = (given: GivenLog): void => {
  describe('a repeated append', () => {
    it.each(['no_stream', 1] as const)(
      'gets the same result and writes no copy, expecting %s',
      async (expected) => {
        const stream = given.aStream();
        if (expected !== 'no_stream') await given.log.append(stream, someEvents(expected + 1), 'no_stream');
        const events = someEvents(3);
        const first = await given.log.append(stream, events, expected);
        expect(await given.log.append(stream, events, expected)).toEqual(first);
        await given.log.append(stream, someEvents(2), first.revision);
        expect(await given.log.append(stream, events, expected)).toEqual(first);
        expect(await eventsOf(given.log.readStream(stream))).toHaveLength(first.revision + 3);
      },
    );

    it('is recognised after the log was reopened', async () => {
      const stream = given.aStream();
      const events = someEvents(2);
      const first = await given.log.append(stream, events, 'no_stream');
      await given.reopen();
      expect(await given.log.append(stream, events, 'no_stream')).toEqual(first);
      expect(await eventsOf(given.log.readStream(stream))).toHaveLength(2);
    });

    it('is recognised when many repeat it at once', async () => {
      const stream = given.aStream();
      const events = someEvents(2);
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => given.log.append(stream, events, 'no_stream')),
      );
      expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
      expect(await eventsOf(given.log.readStream(stream))).toHaveLength(2);
    });

    it('is recognised with an id in capital letters', async () => {
      const stream = given.aStream();
      const event = anEvent();
      const first = await given.log.append(stream, [event], 'no_stream');
      expect(await given.log.append(stream, [{ ...event, id: event.id.toUpperCase() }], 'no_stream')).toEqual(
        first,
      );
    });

    it('is recognised by the start of the stored list, and returns where that ends', async () => {
      const stream = given.aStream();
      const events = someEvents(3);
      await given.log.append(stream, events, 'no_stream');
      const stored = await eventsOf(given.log.readStream(stream));
      const again = await given.log.append(stream, events.slice(0, 2), 'no_stream');
      expect(again).toEqual({ revision: 1, position: stored[1]?.position });
      expect(await eventsOf(given.log.readStream(stream))).toHaveLength(3);
    });

    it.each<[string, (events: readonly NewEvent[]) => readonly NewEvent[], 'no_stream' | number]>([
      ['a longer list', (events) => [...events, anEvent()], 'no_stream'],
      ['another order', (events) => events.toReversed(), 'no_stream'],
      ['another last event', (events) => [...events.slice(0, -1), anEvent()], 'no_stream'],
      ['the same ids at another revision', (events) => events, 0],
      ['the end of the stored list', (events) => events.slice(1), 'no_stream'],
    ])('is not confused with %s', async (_, change, expected) => {
      const stream = given.aStream();
      const events = someEvents(3);
      await given.log.append(stream, events, 'no_stream');
      await expect(given.log.append(stream, change(events), expected)).rejects.toMatchObject({
        code: 'stream_changed',
        more: { actual: 2 },
      });
      expect(idsOf(await eventsOf(given.log.readStream(stream)))).toEqual(idsOf(events));
    });

    it('is not confused with one of the same ids in another stream', async () => {
      const [one, other] = [given.aStream(), given.aStream()];
      const events = someEvents(2);
      const first = await given.log.append(one, events, 'no_stream');
      const second = await given.log.append(other, events, 'no_stream');
      expect(second.position > first.position).toBe(true);
      expect(await eventsOf(given.log.readStream(other))).toHaveLength(2);
    });
  });
};
