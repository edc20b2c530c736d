import { onceAppender, type Retry } from '../../src/event-log/append-once';
import type { EventLog, NewEvent } from '../../src/event-log/event-log';
import { fault } from '../../src/fault';
import { retrying } from '../../src/ingest/retry';
import { onStandIn } from '../support/event-store/logs';
import { anEvent, eventsOf, idsOf, someEvents } from '../support/events';
import { seed, seeded } from '../support/property';
import { randomFrom } from '../support/random';
import { openSqliteLog } from '../support/sqlite-logs';

const withoutRetry: Retry = (action) => action();

const logs: readonly [string, () => Promise<EventLog>][] = [
  ['SQLite', openSqliteLog],
  ['the EventStoreDB stand-in', async () => (await onStandIn()).log],
];

describe.each(logs)('appending each id once to %s', (_, open) => {
  let log: EventLog;
  beforeEach(async () => {
    log = await open();
  });
  const stored = async (): Promise<readonly string[]> => idsOf(await eventsOf(log.readStream('s')));

  it('appends to a new stream, and after what is there', async () => {
    const append = onceAppender(log, withoutRetry);
    const [first, second, third] = [someEvents(3), someEvents(2), someEvents(1)];
    expect(await append('s', first, -1)).toMatchObject({ accepted: 3 });
    expect(await append('s', second, 1)).toMatchObject({ accepted: 2 });
    expect(await onceAppender(log, withoutRetry)('s', third, 4)).toMatchObject({ accepted: 1 });
    expect(await stored()).toEqual(idsOf([...first, ...second, ...third]));
  });

  it('appends nothing that another process appended at the same revision', async () => {
    const events = someEvents(3);
    const { position } = await log.append('s', events, 'no_stream');
    expect(await onceAppender(log, withoutRetry)('s', events, -1)).toMatchObject({ position });
    await onceAppender(log, withoutRetry)('s', events.slice(0, 2), -1);
    expect(await stored()).toEqual(idsOf(events));
  });

  it('leaves out what others appended in the meantime, and keeps the order', async () => {
    const [append, events] = [onceAppender(log, withoutRetry), someEvents(6)];
    const [a, b, c, d, e, f] = events as [NewEvent, NewEvent, NewEvent, NewEvent, NewEvent, NewEvent];
    await append('s', [a], -1);
    await log.append('s', [d], 0);
    await log.append('s', [anEvent(), b], 1);
    expect(await append('s', [b, c, d, e], -1)).toMatchObject({ accepted: 2 });
    const { position } = await log.append('s', [f], 5);
    expect(await append('s', [f, e], -1)).toMatchObject({ position });
    expect(await append('s', [anEvent(), f], -1)).toMatchObject({ accepted: 1 });
    expect((await eventsOf(log.readStream('s', 5)))[0]).toMatchObject({ id: f.id, position });
    expect((await stored()).filter((id) => idsOf(events).includes(id))).toEqual(idsOf([a, d, b, c, e, f]));
  });

  it('fails if the stream ends before what the read models show', async () => {
    await log.append('s', someEvents(3), 'no_stream');
    await expect(onceAppender(log, withoutRetry)('s', someEvents(1), 7)).rejects.toMatchObject({
      code: 'stream_changed',
    });
  });

  it('appends once what it appended without learning of it, even if others append next', async () => {
    const [mine, theirs] = [someEvents(3), someEvents(2)];
    let attempts = 0;
    const append: EventLog['append'] = async (stream, events, expected, withinMs) => {
      attempts += 1;
      const appended = await log.append(stream, events, expected, withinMs);
      if (attempts > 1) return appended;
      await log.append(stream, theirs, appended.revision);
      throw fault('outcome_unknown', 'No answer.');
    };
    const appendOnce = onceAppender(
      { ...log, append },
      retrying(10_000, () => undefined),
    );
    expect(await appendOnce('s', mine, -1)).toMatchObject({ accepted: 3 });
    expect(attempts).toBe(2);
    await appendOnce('s', theirs, -1);
    expect(await stored()).toEqual(idsOf([...mine, ...theirs]));
  });

  it(seeded('stores each id once for several writers at once'), async () => {
    const random = randomFrom(seed);
    const events = someEvents(300);
    /** All events in their order, in appends of any size. */
    const writer = async (): Promise<void> => {
      const append = onceAppender(log, withoutRetry);
      for (let at = 0; at < events.length;) {
        const size = 1 + Math.floor(random() * 20);
        await append('s', events.slice(at, at + size), -1);
        at += size;
      }
    };
    await Promise.all([writer(), writer(), writer()]);
    expect(await stored()).toEqual(idsOf(events));
  });
});
