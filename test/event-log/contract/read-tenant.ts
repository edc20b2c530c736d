import { randomUUID } from 'node:crypto';
import { yieldToEventLoop } from '../../../src/async/clock';
import { bytesOf, MAX_APPEND_BYTES, type LoggedEvent, type NewEvent } from '../../../src/event-log/event-log';
import { anEvent, eventsOf, idsOf, someEvents } from '../../support/events';
import { grow, isIncreasing, type GivenLog } from './given-log';

export const readTenantContract = (given: GivenLog): void => {
  describe('readTenant', () => {
    const twoStreams = async (tenantId: string, rounds: number): Promise<readonly string[]> => {
      const written: string[] = [];
      for (let i = 0; i < rounds; i += 1) {
        const expected = i === 0 ? 'no_stream' : i - 1;
        for (const stream of [given.streams.activity(tenantId), given.streams.tenant(tenantId)]) {
          const event = anEvent();
          await given.log.append(stream, [event], expected);
          written.push(event.id);
        }
        await given.log.append(given.aStream(), someEvents(1), 'no_stream');
      }
      return written;
    };

    it('merges both streams of the tenant by position and shows no other tenant', async () => {
      const tenantId = randomUUID();
      const written = await twoStreams(tenantId, 10);
      const events = await eventsOf(given.log.readTenant(tenantId));
      expect(idsOf(events)).toEqual(written);
      expect(isIncreasing(events)).toBe(true);
    });

    it('starts just after any position, including one of another tenant', async () => {
      const tenantId = randomUUID();
      await twoStreams(tenantId, 5);
      const own = await eventsOf(given.log.readTenant(tenantId));
      for (const { position } of await eventsOf(given.log.readAll())) {
        const rest = await eventsOf(given.log.readTenant(tenantId, { after: position }));
        expect(idsOf(rest)).toEqual(idsOf(own.filter((event) => event.position > position)));
      }
    });

    it('has the last revision of each stream at any position', async () => {
      const tenantId = randomUUID();
      await twoStreams(tenantId, 5);
      const all = await eventsOf(given.log.readAll());
      for (const stream of [given.streams.tenant(tenantId), given.streams.activity(tenantId)])
        for (const { position } of all) {
          const upTo = all.filter((event) => event.stream === stream && event.position <= position);
          expect(await given.log.revisionAt(stream, position)).toBe(upTo.length - 1);
        }
      expect(await given.log.revisionAt(given.aStream(), all.at(-1)!.position)).toBe(-1);
    });

    it('merges streams of very different lengths without a gap', async () => {
      const tenantId = randomUUID();
      await given.log.append(given.streams.tenant(tenantId), someEvents(2), 'no_stream');
      await grow(given.log, given.streams.activity(tenantId), 1_300);
      await grow(given.log, given.streams.tenant(tenantId), 700, 1);
      await grow(given.log, given.streams.activity(tenantId), 100, 1_299);
      const events = await eventsOf(given.log.readTenant(tenantId));
      expect(idsOf(events)).toEqual(idsOf(await eventsOf(given.log.readAll())));
      expect(events).toHaveLength(2_102);
    });

    it('never shows an event before an earlier one, while both streams are written to', async () => {
      const tenantId = randomUUID();
      const [tenant, activity] = [given.streams.tenant(tenantId), given.streams.activity(tenantId)];
      // One page that takes a while to read, so that commits fall between the reads of the two streams.
      const text = 'x'.repeat(3_000);
      const before = Array.from({ length: 250 }, () => anEvent({ text }));
      const { revision } = await given.log.append(tenant, before, 'no_stream');
      await given.log.append(activity, someEvents(1), 'no_stream');
      let isWriting = true;
      const write = async (): Promise<void> => {
        for (let round = 0; round < 30; round += 1)
          await Promise.all([
            given.log.append(tenant, someEvents(1), revision + round),
            given.log.append(activity, someEvents(1), round),
          ]);
      };
      const writing = write().finally(() => (isWriting = false));
      const readings: (readonly string[])[] = [];
      while (isWriting) {
        await yieldToEventLoop();
        readings.push(idsOf(await eventsOf(given.log.readTenant(tenantId))));
      }
      await writing;
      const all = idsOf(await eventsOf(given.log.readTenant(tenantId)));
      expect(all).toHaveLength(311);
      for (const reading of readings) expect(reading).toEqual(all.slice(0, reading.length));
    });

    const large = (): NewEvent => {
      const room = MAX_APPEND_BYTES - bytesOf(anEvent({ text: '' }));
      return anEvent({ text: 'x'.repeat(room) });
    };

    /** Stops a read that makes no progress, so that the test fails instead of running forever. */
    const readInTime = async (tenantId: string, after?: string): Promise<readonly LoggedEvent[]> => {
      const abort = new AbortController();
      const timer = setTimeout(() => abort.abort(), 8_000);
      const events = await eventsOf(
        given.log.readTenant(tenantId, { ...(after === undefined ? {} : { after }), signal: abort.signal }),
      );
      clearTimeout(timer);
      expect(abort.signal.aborted).toBe(false);
      return events;
    };

    it.each([
      ['large, then small', ['tenant', 'tenant']],
      ['large, then small in the other stream', ['tenant', 'activity']],
      ['large in the other stream, then small', ['activity', 'tenant']],
      ['large, then small, both in the other stream', ['activity', 'activity']],
    ] as const)('gets past events of the largest size: %s', async (_, kinds) => {
      const tenantId = randomUUID();
      const heads = new Map<string, number>();
      const ids: string[] = [];
      const put = async (kind: 'tenant' | 'activity', event: NewEvent): Promise<void> => {
        const stream = given.streams[kind](tenantId);
        const { revision } = await given.log.append(stream, [event], heads.get(stream) ?? 'no_stream');
        heads.set(stream, revision);
        ids.push(event.id);
      };
      for (let round = 0; round < 2; round += 1) {
        await put(kinds[0], large());
        await put(kinds[1], anEvent());
      }
      await put(kinds[0], large());
      const events = await readInTime(tenantId);
      expect(idsOf(events)).toEqual(ids);
      for (const [i, { position }] of events.slice(0, 3).entries())
        expect(idsOf(await readInTime(tenantId, position))).toEqual(ids.slice(i + 1));
    });

    it('is empty for a tenant that does not exist', async () => {
      await given.log.append(given.aStream(), someEvents(1), 'no_stream');
      expect(await eventsOf(given.log.readTenant(randomUUID()))).toEqual([]);
    });
  });
};
