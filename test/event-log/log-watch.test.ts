import { randomUUID } from 'node:crypto';
import { pause } from '../../src/async/clock';
import type { Continuity, EventLog, Head } from '../../src/event-log/event-log';
import { logWatch, mustStillHold } from '../../src/event-log/log-watch';
import { streamNames } from '../../src/event-log/streams';
import { fault, type Fault } from '../../src/fault';
import { TIMES } from '../../src/times';
import { closeAfterwards } from '../support/closing';
import { eventsOf, someEvents } from '../support/events';
import { freshFolder } from '../support/folders';
import { editLog, openSqliteLog } from '../support/sqlite-logs';
import { refusedWith, until } from '../support/waiting';

const streams = streamNames();

const watched = (log: EventLog, times = { logDoubtMs: 100, appendFailedMs: 100 }) => {
  const reports: string[] = [];
  const lost: Fault[] = [];
  const watch = logWatch({
    log,
    report: (what) => void reports.push(what),
    onLost: (reason) => void lost.push(reason),
    times,
  });
  closeAfterwards(watch.stop);
  return { watch, reports, lost };
};

const aLog = async () => {
  const folder = freshFolder();
  const log = await openSqliteLog(folder, streams);
  const change = (sql: string): void => editLog(folder, sql);
  const restoreTo = (position: number): void => change(`DELETE FROM events WHERE position > ${position}`);
  return { log, restoreTo, change, aStream: () => streams.tenant(randomUUID()) };
};

const known: Head = { position: '0000000000000007', eventId: randomUUID() };

describe('a log that was set back', () => {
  it('has 5 s to show that it was not, and so has an append that failed to be followed by another', () => {
    expect(TIMES).toMatchObject({ logDoubtMs: 5_000, appendFailedMs: 5_000 });
  });

  it.each<[Continuity, RegExp]>([
    ['set_back', /rolled back: it ends before the event .* at 0000000000000007.*projections rebuild/],
    ['replaced', /rolled back: another log, or none, is in the place.*projections rebuild/],
    ['missing', /at 0000000000000007 is missing.*scavenged, or.*projections rebuild/],
  ])('is refused when it stays %s, and not before', async (found, words) => {
    const begun = performance.now();
    const holding = mustStillHold({ continuity: async () => found }, known, 100);
    await expect(holding).rejects.toMatchObject({
      code: 'log_set_back',
      message: expect.stringMatching(words),
    });
    expect(performance.now() - begun).toBeGreaterThanOrEqual(99);
  });

  it('is accepted if a new leader soon shows the event, and fails for another reason if it is away', async () => {
    let looks = 0;
    const continuity = async (): Promise<Continuity> => (++looks < 3 ? 'set_back' : 'whole');
    await mustStillHold({ continuity }, known, 10_000);
    expect(looks).toBe(3);
    const away = async (): Promise<Continuity> => {
      throw fault('log_unavailable', 'It is away.');
    };
    expect(await refusedWith(mustStillHold({ continuity: away }, known))).toBe('log_unavailable');
  });
});

describe('a watched log', () => {
  it('acknowledges nothing after it was rolled back, not even to a tenant that lost nothing, and is lost', async () => {
    const { log, restoreTo, aStream } = await aLog();
    const { watch, reports, lost } = watched(log);
    const [untouched, other] = [aStream(), aStream()];
    await watch.log.append(untouched, someEvents(2), 'no_stream');
    await watch.log.append(other, someEvents(3), 'no_stream');
    restoreTo(2);
    expect(await refusedWith(watch.log.append(untouched, someEvents(1), 1))).toBe('log_set_back');
    expect(await refusedWith(watch.log.append(aStream(), someEvents(1), 'no_stream'))).toBe('log_set_back');
    expect(await eventsOf(log.readAll())).toHaveLength(3);
    expect(() => watch.mustBeWritable()).toThrow(/The event log was rolled back/);
    expect(lost).toEqual([]);
    await until(() => lost.length > 0);
    await pause(150);
    expect(lost).toMatchObject([{ code: 'log_set_back' }]);
    expect(reports).toHaveLength(1);
    expect(await refusedWith(watch.log.append(aStream(), someEvents(1), 'no_stream'))).toBe('log_set_back');
  });

  it('compares appends with what others have seen in it, and is not lost while it stops', async () => {
    const { log, restoreTo, aStream } = await aLog();
    const { watch, lost } = watched(log);
    const stream = aStream();
    await log.append(stream, someEvents(5), 'no_stream');
    watch.saw((await log.head())!);
    watch.saw({ position: '0000000000000001', eventId: randomUUID() });
    restoreTo(3);
    expect(await refusedWith(watch.log.append(aStream(), someEvents(1), 'no_stream'))).toBe('log_set_back');
    watch.stop();
    await pause(150);
    expect(lost).toEqual([]);
  });

  it('does not mistake a stream that became shorter for one that others have changed', async () => {
    const { log, change, aStream } = await aLog();
    const { watch, lost } = watched(log);
    const [stream, other] = [aStream(), aStream()];
    await watch.log.append(stream, someEvents(5), 'no_stream');
    await watch.log.append(other, someEvents(1), 'no_stream');
    change('DELETE FROM events WHERE position IN (4, 5)');
    await expect(watch.log.append(stream, someEvents(1), 4)).rejects.toMatchObject({
      code: 'log_set_back',
      message: expect.stringContaining('ends at revision 2 but had reached revision 4'),
    });
    expect(await refusedWith(watch.log.append(other, someEvents(1), 0))).toBe('log_set_back');
    await until(() => lost.length > 0);
    expect(await eventsOf(log.readStream(stream))).toHaveLength(3);
  });

  it('recognises a repeated append as such, and a conflict', async () => {
    const { log, aStream } = await aLog();
    const { watch, reports } = watched(log);
    const stream = aStream();
    const events = someEvents(1);
    const first = await watch.log.append(stream, events, 'no_stream');
    await watch.log.append(stream, someEvents(1), 0);
    expect(await watch.log.append(stream, events, 'no_stream')).toEqual(first);
    expect(await refusedWith(watch.log.append(stream, someEvents(1), 0))).toBe('stream_changed');
    expect({ reports, isAway: watch.isAway() }).toEqual({ reports: [], isAway: false });
  });

  it('never says that an append was not made when it could not look', async () => {
    const { log, aStream } = await aLog();
    const continuity = async (): Promise<Continuity> => {
      throw fault('log_unavailable', 'It is away.');
    };
    const { watch } = watched({ ...log, continuity });
    const [stream, events] = [aStream(), someEvents(1)];
    await watch.log.append(stream, events, 'no_stream');
    expect(await refusedWith(watch.log.append(stream, events, 'no_stream'))).toBe('outcome_unknown');
  });

  it('accepts appends again if a new leader showed an older state for a moment, even if it was away meanwhile', async () => {
    const { log, aStream } = await aLog();
    const answers: (Continuity | 'away')[] = ['set_back', 'set_back', 'away', 'whole'];
    const continuity = async (): Promise<Continuity> => {
      const next = answers.shift() ?? 'whole';
      if (next === 'away') throw fault('log_unavailable', 'It is away.');
      return next;
    };
    const { watch, reports, lost } = watched({ ...log, continuity }, { ...TIMES, logDoubtMs: 5_000 });
    watch.saw(known);
    expect(await refusedWith(watch.log.append(aStream(), someEvents(1), 'no_stream'))).toBe('log_set_back');
    expect(watch.isAway()).toBe(true);
    await until(() => !watch.isAway());
    expect([reports.length, lost]).toEqual([2, []]);
    for (let i = 0; i < 8; i += 1) await watch.log.append(aStream(), someEvents(1), 'no_stream');
  });

  it('is not writable for a while after a failed append, and away until one succeeds', async () => {
    const { log, aStream } = await aLog();
    let isAway = true;
    const append: EventLog['append'] = async (...all) => {
      if (isAway) throw fault('log_unavailable', 'A lock is held.');
      return log.append(...all);
    };
    const { watch } = watched({ ...log, append });
    expect(() => watch.mustBeWritable()).not.toThrow();
    await refusedWith(watch.log.append(aStream(), someEvents(1), 'no_stream'));
    expect(() => watch.mustBeWritable()).toThrow('Writes are failing. A lock is held.');
    await pause(110);
    expect(() => watch.mustBeWritable()).not.toThrow();
    expect(watch.isAway()).toBe(true);
    isAway = false;
    await watch.log.append(aStream(), someEvents(1), 'no_stream');
    expect(watch.isAway()).toBe(false);
  });
});
