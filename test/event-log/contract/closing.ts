import { randomUUID } from 'node:crypto';
import { someEvents } from '../../support/events';
import { refusedWith, until } from '../../support/waiting';
import { following, grow, type GivenLog } from './given-log';

export const closingContract = (given: GivenLog): void => {
  describe('reading', () => {
    /** Takes this many batches and stops. */
    const leaving = async (reading: AsyncIterable<unknown>, batches: number): Promise<void> => {
      let taken = 0;
      for await (const _ of reading) {
        taken += 1;
        if (taken === batches) break;
      }
    };
    const ALL = Infinity;

    it('leaves nothing open, whatever is read and wherever it is abandoned', async () => {
      const { log, streams } = given;
      const tenantId = randomUUID();
      const readings: Readonly<Record<string, () => Promise<unknown>>> = {
        'the whole log': () => leaving(log.readAll(), ALL),
        'the whole log, left early': () => leaving(log.readAll(), 1),
        'the whole log, followed and left': () => leaving(log.readAll({ follow: true }), 1),
        'a tenant': () => leaving(log.readTenant(tenantId), ALL),
        'a tenant, left early': () => leaving(log.readTenant(tenantId), 1),
        'a stream': () => leaving(log.readStream(streams.tenant(tenantId)), ALL),
        'a stream, left early': () => leaving(log.readStream(streams.tenant(tenantId)), 1),
        'a stream that is not there': () => leaving(log.readStream(given.aStream()), ALL),
        'a distance': async () => log.distance(undefined, (await log.head())!.position),
        'the continuity': async () => log.continuity(await log.head()),
      };
      await grow(log, streams.tenant(tenantId), 700);
      await grow(log, streams.activity(tenantId), 700);
      for (const [name, read] of Object.entries(readings)) {
        for (let i = 0; i < 2; i += 1) await read();
        await until(() => given.openReads() === 0, 20_000, `no read is left open: ${name}`);
      }
    });
  });

  describe('close', () => {
    const resources = (): Map<string, number> => {
      const counts = new Map<string, number>();
      for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
      return counts;
    };

    it('leaves nothing that keeps the process alive, and may be called twice', async () => {
      const before = resources();
      const { log: own, streams: its } = await given.openOne();
      await grow(own, given.aStream(its), 600);
      for await (const _ of own.readAll()) break;
      const tail = following((signal) => own.readAll({ follow: true, signal }));
      await until(() => tail.seen.length === 600);
      await tail.stop();
      await given.close(own);
      await own.close();
      await until(() => [...resources()].every(([kind, count]) => count <= (before.get(kind) ?? 0)));
    });

    it('ends followers', async () => {
      const before = resources();
      const { log: own, streams: its } = await given.openOne();
      await grow(own, given.aStream(its), 2);
      const tail = following((signal) => own.readAll({ follow: true, signal }));
      await until(() => tail.seen.length === 2);
      await given.close(own);
      await tail.ended;
      await until(() => [...resources()].every(([kind, count]) => count <= (before.get(kind) ?? 0)));
    });

    it('fails a read that it cuts off, which did not see everything', async () => {
      const { log: own, streams: its } = await given.openOne();
      const stream = given.aStream(its);
      await grow(own, stream, 3_000);
      const reading = own.readStream(stream)[Symbol.asyncIterator]();
      await reading.next();
      await given.close(own);
      const rest = (async () => {
        while ((await reading.next()).done !== true);
      })();
      expect(await refusedWith(rest)).toBe('log_unavailable');
    });

    it('refuses later appends as not written', async () => {
      const { log: own } = await given.openOne();
      await given.close(own);
      expect(await refusedWith(own.append(given.aStream(), someEvents(1), 'no_stream'))).toBe(
        'log_unavailable',
      );
    });
  });
};
