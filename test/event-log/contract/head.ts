import { yieldToEventLoop } from '../../../src/async/clock';
import { eventsOf, someEvents } from '../../support/events';
import { grow, type GivenLog } from './given-log';

export const headContract = (given: GivenLog): void => {
  describe('head', () => {
    it('is undefined for an empty log', async () => {
      expect(await given.log.head()).toBeUndefined();
    });

    it('names the last event', async () => {
      const stream = given.aStream();
      const events = await grow(given.log, stream, 12);
      const stored = await eventsOf(given.log.readAll());
      expect(await given.log.head()).toEqual({
        position: stored.at(-1)?.position,
        eventId: events.at(-1)?.id,
      });
    });

    it('includes an append that was just acknowledged', async () => {
      for (let i = 0; i < 20; i += 1) {
        const [event] = someEvents(1);
        const { position } = await given.log.append(given.aStream(), [event!], 'no_stream');
        expect(await given.log.head()).toEqual({ position, eventId: event!.id });
      }
    });

    it('includes what was acknowledged while it was being read', async () => {
      const stream = given.aStream();
      let acknowledged = '';
      let isWriting = true;
      const write = async (): Promise<void> => {
        for (let revision = -1; revision < 60; revision += 1)
          ({ position: acknowledged } = await given.log.append(
            stream,
            someEvents(1),
            revision < 0 ? 'no_stream' : revision,
          ));
      };
      const writing = write().finally(() => (isWriting = false));
      while (isWriting) {
        const position = (await given.log.head())?.position ?? '';
        expect(position >= acknowledged).toBe(true);
        await yieldToEventLoop();
      }
      await writing;
    });

    it('from another, longer log is a position with nothing after it', async () => {
      const { log: longer, streams: its } = await given.openOne();
      await grow(given.log, given.aStream(), 2);
      await grow(longer, given.aStream(its), 30);
      const beyond = (await longer.head())!.position;
      expect(await eventsOf(given.log.readAll({ after: beyond }))).toEqual([]);
    });
  });

  describe('distance', () => {
    it('counts the events between two positions', async () => {
      const [one, two] = [given.aStream(), given.aStream()];
      await grow(given.log, one, 3);
      await grow(given.log, two, 2);
      await given.log.append(one, someEvents(4), 2);
      const positions = (await eventsOf(given.log.readAll())).map(({ position }) => position);
      for (const [i, upTo] of positions.entries()) {
        expect(await given.log.distance(undefined, upTo)).toBe(i + 1);
        for (const [j, after] of positions.entries())
          expect(await given.log.distance(after, upTo)).toBe(Math.max(0, i - j));
      }
    });

    it('is the same when the log is reopened', async () => {
      await grow(given.log, given.aStream(), 600);
      const head = await given.log.head();
      await given.reopen();
      expect(await given.log.distance(undefined, head!.position)).toBe(600);
      expect(await given.log.distance(head!.position, head!.position)).toBe(0);
    });
  });

  describe('the change token, if the log has one', () => {
    it('stays the same until anything is appended, by whichever process', async () => {
      const { log, streams, beside } = await given.openOne();
      if (log.changeToken === undefined) return;
      const other = await beside();
      for (const writer of [log, other, log, other]) {
        const before = log.changeToken();
        await eventsOf(log.readAll());
        expect([log.changeToken(), before]).toEqual([before, expect.any(Number)]);
        await writer.append(given.aStream(streams), someEvents(1), 'no_stream');
        expect(log.changeToken()).not.toBe(before);
      }
      await other.close();
      await log.close();
      expect(log.changeToken()).toBeUndefined();
    });
  });
};
