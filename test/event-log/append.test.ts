import {
  appendToEnd,
  appendUntilCertain,
  type Appended,
  type EventLog,
  type Expected,
} from '../../src/event-log/event-log';
import { fault } from '../../src/fault';
import { anEvent } from '../support/events';
import { passTime } from '../support/pass-time';
import { refusedWith } from '../support/waiting';

describe('an append whose response may be lost', () => {
  const noAnswer = (): Error => fault('no_answer', 'It did not answer.');

  const attempts = (...ends: readonly Error[]) => {
    const given: number[] = [];
    const attempt = async (withinMs: number): Promise<Appended> => {
      throw ends[given.push(withinMs) - 1] ?? new Error('It was attempted too often.');
    };
    return { attempt, given };
  };

  it.each(['stream_changed', 'log_unavailable', 'event_too_large'] as const)(
    'is not repeated if the response was %s',
    async (code) => {
      const { attempt, given } = attempts(fault(code, 'No.'));
      expect(await refusedWith(appendUntilCertain(attempt, 1_000))).toBe(code);
      expect(given).toHaveLength(1);
    },
  );

  it('is settled by the same attempt again: another writer was faster', async () => {
    const { attempt } = attempts(noAnswer(), fault('stream_changed', 'It has.', { actual: 7 }));
    await expect(appendUntilCertain(attempt, 1_000)).rejects.toMatchObject({
      code: 'stream_changed',
      more: { actual: 7 },
    });
  });

  it.each(['history_missing', 'log_set_back'] as const)(
    'is settled by the same attempt again: %s, and anything written is gone with it',
    async (code) => {
      const { attempt } = attempts(noAnswer(), fault(code, 'Gone.'));
      expect(await refusedWith(appendUntilCertain(attempt, 1_000))).toBe(code);
    },
  );

  it.each([
    ['no response either', noAnswer()],
    ['log_unavailable', fault('log_unavailable', 'No.')],
    ['any failure', new Error('Oh.')],
  ])('stays unknown if the second attempt gives %s, and is never reported as not written', async (_, end) => {
    const { attempt, given } = attempts(noAnswer(), end);
    expect(await refusedWith(appendUntilCertain(attempt, 1_000))).toBe('outcome_unknown');
    expect(given).toHaveLength(2);
  });

  it('splits its time between both attempts', async () => {
    const given: number[] = [];
    const attempt = async (withinMs: number): Promise<Appended> => {
      given.push(withinMs);
      passTime(withinMs);
      throw noAnswer();
    };
    expect(await refusedWith(appendUntilCertain(attempt, 20_000))).toBe('outcome_unknown');
    expect(given[0]).toBe(12_000);
    expect(given[1]).toBeGreaterThan(0);
    expect(given[1]).toBeLessThanOrEqual(8_000);
  });
});

/** A log that reports these ends of the stream one after the other, and then accepts the append. */
const logWithEnds = (...ends: readonly Expected[]) => {
  const tried: (readonly [Expected, number | undefined])[] = [];
  const append: EventLog['append'] = async (_, events, expected, withinMs) => {
    tried.push([expected, withinMs]);
    const end = ends[tried.length - 1];
    if (end !== undefined && end !== expected)
      throw fault('stream_changed', 'It has changed.', { actual: end === 'no_stream' ? -1 : end });
    return { revision: (expected === 'no_stream' ? -1 : expected) + events.length, position: 'p' };
  };
  return { append, tried };
};

describe('appending to the end of a stream', () => {
  it('starts a stream that does not exist', async () => {
    const { append, tried } = logWithEnds();
    expect(await appendToEnd({ append }, 's', [anEvent()])).toEqual({ revision: 0, position: 'p' });
    expect(tried).toEqual([['no_stream', undefined]]);
  });

  it('retries at the end that a conflict reports, as often as it takes', async () => {
    const { append, tried } = logWithEnds(7, 9, 'no_stream');
    expect(await appendToEnd({ append }, 's', [anEvent(), anEvent()], 100)).toMatchObject({ revision: 1 });
    expect(tried).toEqual([
      ['no_stream', 100],
      [7, 100],
      [9, 100],
      ['no_stream', 100],
    ]);
  });

  it('fails with any other error', async () => {
    const append = () => Promise.reject(fault('outcome_unknown', 'Perhaps.'));
    await expect(appendToEnd({ append }, 's', [anEvent()])).rejects.toMatchObject({
      code: 'outcome_unknown',
    });
  });
});
