import { yieldToEventLoop } from '../../../src/async/clock';
import { eventsOf, someEvents } from '../../support/events';
import { following, grow, type GivenLog } from './given-log';

export const continuityContract = (given: GivenLog): void => {
  describe('continuity', () => {
    const knownIn = async () => {
      await grow(given.log, given.aStream(), 12);
      return (await eventsOf(given.log.readAll())).map(({ id, position }) => ({ eventId: id, position }));
    };

    it('holds while a known event is where it was, and for an empty log', async () => {
      expect(await given.log.continuity()).toBe('whole');
      for (const known of await knownIn()) expect(await given.log.continuity(known)).toBe('whole');
      await given.reopen();
      expect(await given.log.continuity(await given.log.head())).toBe('whole');
    });

    it('is broken by another event in its place, and by an end before it', async () => {
      const [first, , third] = await knownIn();
      expect(await given.log.continuity({ eventId: first!.eventId, position: third!.position })).toBe(
        'set_back',
      );
      const beyond = String(BigInt(third!.position) + 10n ** 12n).padStart(third!.position.length, '0');
      expect(await given.log.continuity({ eventId: first!.eventId, position: beyond })).toBe('set_back');
    });

    it('is never doubted while many write and somebody checks events that were just read or written', async () => {
      let isOver = false;
      const writing = Array.from({ length: 4 }, async () => {
        const stream = given.aStream();
        for (let revision = -1; revision < 150; revision += 3)
          await given.log.append(stream, someEvents(3), revision < 0 ? 'no_stream' : revision, 10_000);
      });
      const tail = following((signal) => given.log.readAll({ follow: true, signal }));
      const found = new Set<string>();
      const asking = (async () => {
        while (!isOver) {
          const last = tail.seen.at(-1);
          const read = last === undefined ? undefined : { eventId: last.id, position: last.position };
          for (const known of [read, await given.log.head()]) found.add(await given.log.continuity(known));
          await yieldToEventLoop();
        }
      })();
      await Promise.all(writing);
      isOver = true;
      await asking;
      await tail.stop();
      expect([...found]).toEqual(['whole']);
    });
  });

  describe('after a restart', () => {
    it('has the same identity, which no other log has', async () => {
      const identity = await given.log.identity();
      expect(identity).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
      await given.log.append(given.aStream(), someEvents(1), 'no_stream');
      expect(await given.log.identity()).toBe(identity);
      await given.reopen();
      expect(await given.log.identity()).toBe(identity);
      expect(await (await given.openOne()).log.identity()).not.toBe(identity);
    });

    it('has every event, and continues', async () => {
      const stream = given.aStream();
      await grow(given.log, stream, 20);
      const before = await eventsOf(given.log.readAll());
      await given.reopen();
      expect(await eventsOf(given.log.readAll())).toEqual(before);
      const { position } = await given.log.append(stream, someEvents(1), 19);
      expect(position > before.at(-1)!.position).toBe(true);
    });
  });
};
