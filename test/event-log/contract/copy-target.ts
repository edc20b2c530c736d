import { eventsOf } from '../../support/events';
import { refusedWith } from '../../support/waiting';
import { grow, type GivenLog } from './given-log';

export const copyTargetContract = (given: GivenLog): void => {
  describe('the target of a copy', () => {
    it('is refused by everybody else until it is marked as complete, and has the same events then', async () => {
      const { log, streams, beside } = await given.openOne('copy');
      await grow(log, given.aStream(streams), 5);
      const [identity, events] = [await log.identity(), await eventsOf(log.readAll())];
      expect(await refusedWith(beside())).toBe('log_incomplete');
      await log.completeCopy();
      await log.completeCopy();
      const complete = await beside();
      expect([await complete.identity(), await eventsOf(complete.readAll())]).toEqual([identity, events]);
      await complete.close();
    });
  });
};
