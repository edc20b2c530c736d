import { logFault, type Appended } from '../../src/event-log/event-log';
import { appendWithRetry } from '../../src/event-log/append-with-retry';
import { fault } from '../../src/fault';
import { passTime } from '../support/pass-time';
import { refusedWith } from '../support/waiting';

describe('an append whose response may be lost', () => {
  const appended: Appended = { revision: 4, position: '05' };
  const noAnswer = (): Error => fault('no_answer', 'It did not answer.');

  /** Attempts that end as listed, one after another; records the time that each was given. */
  const attempts = (...ends: readonly (Appended | Error)[]) => {
    const given: number[] = [];
    const attempt = async (withinMs: number): Promise<Appended> => {
      const end = ends[given.push(withinMs) - 1];
      if (end === undefined) throw new Error('It was attempted too often.');
      if (end instanceof Error) throw end;
      return end;
    };
    return { attempt, given };
  };

  it('is not repeated if there was a response', async () => {
    const { attempt, given } = attempts(appended);
    expect(await appendWithRetry(attempt, 1_000)).toEqual(appended);
    expect(given).toHaveLength(1);
  });

  it.each(['stream_changed', 'log_unavailable', 'event_too_large'] as const)(
    'is not repeated if the response was %s',
    async (code) => {
      const { attempt, given } = attempts(logFault(code, 'No.'));
      expect(await refusedWith(appendWithRetry(attempt, 1_000))).toBe(code);
      expect(given).toHaveLength(1);
    },
  );

  it('is settled by the same attempt again: it was written', async () => {
    const { attempt, given } = attempts(noAnswer(), appended);
    expect(await appendWithRetry(attempt, 1_000)).toEqual(appended);
    expect(given).toHaveLength(2);
  });

  it('is settled by the same attempt again: another writer was faster', async () => {
    const { attempt } = attempts(noAnswer(), logFault('stream_changed', 'It has.', { actual: 7 }));
    await expect(appendWithRetry(attempt, 1_000)).rejects.toMatchObject({
      code: 'stream_changed',
      more: { actual: 7 },
    });
  });

  it.each(['history_missing', 'log_set_back'] as const)(
    'is settled by the same attempt again: %s, and anything written is gone with it',
    async (code) => {
      const { attempt } = attempts(noAnswer(), logFault(code, 'Gone.'));
      expect(await refusedWith(appendWithRetry(attempt, 1_000))).toBe(code);
    },
  );

  it.each([
    ['no response either', noAnswer()],
    ['log_unavailable', logFault('log_unavailable', 'No.')],
    ['any failure', new Error('Oh.')],
  ])('stays unknown if the second attempt gives %s, and is never reported as not written', async (_, end) => {
    const { attempt, given } = attempts(noAnswer(), end);
    expect(await refusedWith(appendWithRetry(attempt, 1_000))).toBe('outcome_unknown');
    expect(given).toHaveLength(2);
  });

  it('splits its time between both attempts', async () => {
    const given: number[] = [];
    const attempt = async (withinMs: number): Promise<Appended> => {
      given.push(withinMs);
      passTime(withinMs);
      throw noAnswer();
    };
    expect(await refusedWith(appendWithRetry(attempt, 20_000))).toBe('outcome_unknown');
    expect(given[0]).toBe(12_000);
    expect(given[1]).toBeGreaterThan(0);
    expect(given[1]).toBeLessThanOrEqual(8_000);
  });
});
