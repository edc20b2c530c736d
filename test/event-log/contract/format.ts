import { NEWEST_FORMAT, UNFINISHED_COPY } from '../../../src/domain/formats';
import { eventsOf, someEvents } from '../../support/events';
import { grow, type GivenLog } from './given-log';

export const formatContract = (given: GivenLog): void => {
  describe('format', () => {
    it('is the newest one in a new log, or the one that it was created with, and is kept', async () => {
      expect(await given.log.format()).toBe(NEWEST_FORMAT);
      await given.reopen();
      expect(await given.log.format()).toBe(NEWEST_FORMAT);
      for (const format of [1, UNFINISHED_COPY]) {
        const older = await given.openOne(format);
        expect(await older.log.format()).toBe(format);
        const again = await older.reopen();
        expect(await again.log.format()).toBe(format);
        await again.log.close();
      }
    });

    it('comes with the name of the software that stores it', async () => {
      expect(await given.log.software()).toMatch(/^(SQLite|EventStoreDB) \S/);
    });

    it('is raised for every process that has the log open, and never lowered', async () => {
      const { log, beside, reopen } = await given.openOne(1);
      const other = await beside();
      await log.raiseFormat(3);
      expect(await Promise.all([log.format(), other.format()])).toEqual([3, 3]);
      await other.raiseFormat(3);
      await other.raiseFormat(2);
      expect(await Promise.all([log.format(), other.format()])).toEqual([3, 3]);
      await other.close();
      const again = await reopen();
      expect(await again.log.format()).toBe(3);
      await again.log.close();
    });

    it('becomes the highest if several raise it at once', async () => {
      const { log, beside } = await given.openOne(1);
      const other = await beside();
      await Promise.all([3, 5, 2, 5, 4].map((to, i) => (i % 2 === 0 ? log : other).raiseFormat(to)));
      expect(await Promise.all([log.format(), other.format()])).toEqual([5, 5]);
      await other.close();
    });

    it('leaves identity, head, events and continuity unchanged', async () => {
      const stream = given.aStream();
      await grow(given.log, stream, 5);
      const seen = async () => ({
        identity: await given.log.identity(),
        head: await given.log.head(),
        all: await eventsOf(given.log.readAll()),
      });
      const before = await seen();
      await given.log.raiseFormat(NEWEST_FORMAT + 1);
      expect(await seen()).toEqual(before);
      expect(await given.log.continuity(before.head)).toBe('whole');
      await given.reopen();
      expect(await seen()).toEqual(before);
      expect(await given.log.append(stream, someEvents(1), 4)).toMatchObject({ revision: 5 });
    });
  });
};
