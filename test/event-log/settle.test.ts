import { pause } from '../../src/clock';
import { logFault, type Appended } from '../../src/event-log/event-log';
import { settled } from '../../src/event-log/settle';
import { fault } from '../../src/fault';
import { refusedWith } from '../support/waiting';

describe('an append that got no answer', () => {
  const appended: Appended = { revision: 4, position: '05' };
  const noAnswer = (): Error => fault('no_answer', 'It did not answer.');

  /** Attempts that end one after another as listed; remembers the time each was given. */
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

  it('is not made again when there was an answer', async () => {
    const { attempt, given } = attempts(appended);
    expect(await settled(attempt, 1_000)).toEqual(appended);
    expect(given).toHaveLength(1);
  });

  it.each(['stream_changed', 'log_unavailable', 'event_too_large'] as const)(
    'is not made again when the answer was %s',
    async (code) => {
      const { attempt, given } = attempts(logFault(code, 'No.'));
      expect(await refusedWith(settled(attempt, 1_000))).toBe(code);
      expect(given).toHaveLength(1);
    },
  );

  it('is settled by the same attempt again: it was written', async () => {
    const { attempt, given } = attempts(noAnswer(), appended);
    expect(await settled(attempt, 1_000)).toEqual(appended);
    expect(given).toHaveLength(2);
  });

  it('is settled by the same attempt again: another was faster', async () => {
    const { attempt } = attempts(noAnswer(), logFault('stream_changed', 'It has.', { actual: 7 }));
    await expect(settled(attempt, 1_000)).rejects.toMatchObject({
      code: 'stream_changed',
      more: { actual: 7 },
    });
  });

  it.each(['history_missing', 'log_set_back'] as const)(
    'is settled by the same attempt again: %s, and whatever was written is gone with it',
    async (code) => {
      const { attempt } = attempts(noAnswer(), logFault(code, 'Gone.'));
      expect(await refusedWith(settled(attempt, 1_000))).toBe(code);
    },
  );

  it.each([
    ['no answer either', noAnswer()],
    ['log_unavailable', logFault('log_unavailable', 'No.')],
    ['any failure', new Error('Oh.')],
  ])(
    'stays unknown when the second attempt gives %s: it is never claimed that nothing was written',
    async (_, end) => {
      const { attempt, given } = attempts(noAnswer(), end);
      expect(await refusedWith(settled(attempt, 1_000))).toBe('outcome_unknown');
      expect(given).toHaveLength(2);
    },
  );

  it('shares the time between both attempts', async () => {
    const given: number[] = [];
    const attempt = async (withinMs: number): Promise<Appended> => {
      given.push(withinMs);
      await pause(withinMs);
      throw noAnswer();
    };
    expect(await refusedWith(settled(attempt, 200))).toBe('outcome_unknown');
    expect(given[0]).toBe(120);
    expect(given[1]).toBeGreaterThan(0);
    expect(given[1]).toBeLessThanOrEqual(81);
  });
});
