import { randomUUID } from 'node:crypto';
import type { Continuity, EventLog, Head } from '../../src/event-log/event-log';
import { logWatch, type LogWatchDependencies } from '../../src/event-log/log-watch';
import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../src/event-log/streams';
import { codeOf, type Fault } from '../../src/fault';
import { closeAfterwards } from '../support/closing';
import { startStandIn } from '../support/event-store/stand-in';
import { eventsOf, someEvents } from '../support/events';
import { freshFolder } from '../support/folders';
import { clustered, EMBEDDED, openAppIn } from '../support/profile';
import { openForWriting } from '../../src/sqlite/database';
import { passTime } from '../support/pass-time';
import { refusedWith, until } from '../support/waiting';
import { join } from 'node:path';

const streams = streamNames();

const watched = (log: EventLog, more: Partial<LogWatchDependencies> = {}) => {
  const reports: { readonly what: string; readonly error?: Fault | undefined }[] = [];
  let lost = 0;
  const watch = logWatch({
    log,
    checkpoint: async () => undefined,
    report: (what, error) => void reports.push({ what, error }),
    onLost: () => (lost += 1),
    ...more,
  });
  closeAfterwards(watch.stop);
  return { watch, reports, lost: () => lost };
};

const aLog = async () => {
  const folder = freshFolder();
  const log = await sqliteEventLog(folder, streams);
  closeAfterwards(log.close);
  const restoreTo = (position: number): void => {
    const db = openForWriting(join(folder, 'events.db'), 'FULL');
    db.exec(`DELETE FROM events WHERE position > ${position}`);
    db.close();
  };
  return { log, restoreTo, aStream: () => streams.tenant(randomUUID()) };
};

describe('a watched log', () => {
  it('acknowledges nothing after it was rolled back, not even to a tenant that lost nothing', async () => {
    const { log, restoreTo, aStream } = await aLog();
    const { watch, reports } = watched(log);
    const [untouched, other] = [aStream(), aStream()];
    await watch.log.append(untouched, someEvents(2), 'no_stream');
    await watch.log.append(other, someEvents(3), 'no_stream');
    restoreTo(2);
    expect(await refusedWith(watch.log.append(untouched, someEvents(1), 1))).toBe('log_set_back');
    expect(reports.map(({ error }) => codeOf(error))).toEqual(['log_set_back']);
    expect(await refusedWith(watch.log.append(aStream(), someEvents(1), 'no_stream'))).toBe('log_set_back');
    await expect(watch.mustBeWritable()).rejects.toThrow(/The event log was rolled back/);
  });

  it('does not mistake a stream that became shorter for one that others have changed', async () => {
    const { log, restoreTo, aStream } = await aLog();
    const { watch } = watched({ ...log, continuity: async () => 'whole' });
    const stream = aStream();
    await watch.log.append(stream, someEvents(5), 'no_stream');
    restoreTo(3);
    const refused = watch.log.append(stream, someEvents(1), 4);
    await expect(refused).rejects.toMatchObject({
      code: 'log_set_back',
      message: expect.stringContaining('ends at revision 2 but had reached revision 4'),
    });
    expect(await eventsOf(log.readStream(stream))).toHaveLength(3);
  });

  it('recognises a repeated append as such', async () => {
    const { log, aStream } = await aLog();
    const { watch, reports } = watched(log);
    const stream = aStream();
    const events = someEvents(1);
    const first = await watch.log.append(stream, events, 'no_stream');
    await watch.log.append(stream, someEvents(1), 0);
    expect(await watch.log.append(stream, events, 'no_stream')).toEqual(first);
    expect(await refusedWith(watch.log.append(stream, someEvents(1), 0))).toBe('stream_changed');
    expect(reports).toEqual([]);
  });

  const scripted = async (answers: () => Continuity | Promise<Continuity>) => {
    const { log } = await aLog();
    const known: Head = { position: '0000000000000007', eventId: randomUUID() };
    return watched(
      { ...log, continuity: async () => answers() },
      { checkpoint: async () => known, everyMs: 5 },
    );
  };

  it('reports once that it is unreachable, and once for how long it was', async () => {
    let isAway = true;
    const { watch, reports } = await scripted(() => {
      if (isAway) throw Object.assign(new Error('gone'), { code: 'log_unavailable' });
      return 'whole';
    });
    await watch.check();
    await watch.check();
    isAway = false;
    await watch.check();
    await watch.check();
    expect(reports.map(({ what }) => what)).toEqual([
      'The event log is out of reach; retrying until it is back.',
      expect.stringMatching(/^The event log is back after \d+\.\d s\.$/),
    ]);
    expect(reports[1]?.error).toBeUndefined();
    expect(watch.setBack()).toBeUndefined();
  });

  it('refuses appends when it looks rolled back, resumes if that was momentary, but not by growing past it', async () => {
    let now: Continuity = 'set_back';
    const { watch, reports, lost } = await scripted(() => now);
    await watch.check();
    expect(watch.setBack()?.message).toMatch(/rolled back: it ends before the event .* at 0000000000000007/);
    expect(() => watch.assertLogIntact()).not.toThrow();
    now = 'missing';
    await watch.check();
    expect(watch.setBack()).toBeDefined();
    now = 'whole';
    await watch.check();
    expect(watch.setBack()).toBeUndefined();
    expect(reports).toHaveLength(2);
    expect(lost()).toBe(0);
  });

  it('is lost for good if it stays rolled back, whatever follows', async () => {
    let now: Continuity = 'replaced';
    const { watch, reports, lost } = await scripted(() => now);
    watch.start();
    await until(() => reports.length === 1);
    expect(lost()).toBe(0);
    passTime(5_001);
    await until(() => lost() === 1);
    now = 'whole';
    await watch.check();
    expect(watch.setBack()?.message).toContain('another log, or none, is in the place');
    expect(() => watch.assertLogIntact()).toThrow('another log, or none, is in the place');
    expect(reports).toHaveLength(1);
  });

  it('reports a missing event once, and continues', async () => {
    const { watch, reports } = await scripted(() => 'missing');
    await watch.check();
    await watch.check();
    expect(watch.setBack()).toBeUndefined();
    expect(watch.missing()?.message).toMatch(/scavenged, or the log was rolled back.*projections rebuild/);
    expect(reports).toHaveLength(1);
  });
});

describe.each(['SQLite', 'the event store'])(
  'a log in %s that is constantly written, projected and checked',
  (kind) => {
    it('is never considered rolled back', async () => {
      const folder = freshFolder();
      const store = kind === 'SQLite' ? undefined : await startStandIn();
      if (store !== undefined) closeAfterwards(() => store.stop());
      const env = store === undefined ? EMBEDDED : clustered(store.url);
      const app = await openAppIn(folder, env);
      closeAfterwards(() => app.close());
      await app.projecting.start();
      let looks = 0;
      const checkpoint = async (): Promise<Head | undefined> => {
        looks += 1;
        const controls = await Promise.all(app.projecting.live.map(({ generation }) => generation.control()));
        return controls
          .map(({ to }) => to)
          .toSorted((a, b) => ((a?.position ?? '') < (b?.position ?? '') ? -1 : 1))
          .at(-1);
      };
      const { watch, reports } = watched(app.log, { checkpoint, everyMs: 1 });
      watch.start();
      let last = '';
      const write = async (): Promise<void> => {
        const stream = app.streams.activity(randomUUID());
        for (let at = -1; at < 99; at += 4)
          ({ position: last } = await watch.log.append(
            stream,
            someEvents(4),
            at < 0 ? 'no_stream' : at,
            20_000,
          ));
      };
      do await Promise.all(Array.from({ length: 6 }, write));
      while (looks < 20);
      expect(await app.projecting.reached(last, 20_000)).toBe(true);
      expect({ reports, setBack: watch.setBack(), missing: watch.missing() }).toEqual({ reports: [] });
    }, 60_000);
  },
);
