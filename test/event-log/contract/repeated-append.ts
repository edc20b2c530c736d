import type { NewEvent } from '../../../src/event-log/event-log';
import { anEvent, eventsOf, idsOf, someEvents } from '../../support/events';
import { type GivenLog } from './given-log';

export const repeatedAppendContract = (given: GivenLog): void => {
  describe('the same append again', () => {
    it.each(['no_stream', 1] as const)(
      'gives the same answer and writes no copy, expecting %s',
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

    it('also after the log was opened again', async () => {
      const stream = given.aStream();
      const events = someEvents(2);
      const first = await given.log.append(stream, events, 'no_stream');
      await given.reopen();
      expect(await given.log.append(stream, events, 'no_stream')).toEqual(first);
      expect(await eventsOf(given.log.readStream(stream))).toHaveLength(2);
    });

    it('also when many ask at once', async () => {
      const stream = given.aStream();
      const events = someEvents(2);
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => given.log.append(stream, events, 'no_stream')),
      );
      expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
      expect(await eventsOf(given.log.readStream(stream))).toHaveLength(2);
    });

    it('recognises an id in capital letters', async () => {
      const stream = given.aStream();
      const event = anEvent();
      const first = await given.log.append(stream, [event], 'no_stream');
      expect(await given.log.append(stream, [{ ...event, id: event.id.toUpperCase() }], 'no_stream')).toEqual(
        first,
      );
    });

    it('takes the beginning of the stored list for the same, and answers where that ends', async () => {
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
    ])('does not take %s for the same', async (_, change, expected) => {
      const stream = given.aStream();
      const events = someEvents(3);
      await given.log.append(stream, events, 'no_stream');
      await expect(given.log.append(stream, change(events), expected)).rejects.toMatchObject({
        code: 'stream_changed',
        more: { actual: 2 },
      });
      expect(idsOf(await eventsOf(given.log.readStream(stream)))).toEqual(idsOf(events));
    });

    it('knows the same ids in another stream as another append', async () => {
      const [one, other] = [given.aStream(), given.aStream()];
      const events = someEvents(2);
      const first = await given.log.append(one, events, 'no_stream');
      const second = await given.log.append(other, events, 'no_stream');
      expect(second.position > first.position).toBe(true);
      expect(await eventsOf(given.log.readStream(other))).toHaveLength(2);
    });
  });
};
