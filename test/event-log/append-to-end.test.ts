import { appendToEnd } from '../../src/event-log/append-to-end';
import { logFault, type EventLog, type Expected } from '../../src/event-log/event-log';
import { anEvent } from '../support/events';

/** A log that reports these ends of the stream one after the other, and then accepts the append. */
const logWithEnds = (...ends: readonly Expected[]) => {
  const tried: (readonly [Expected, number | undefined])[] = [];
  const append: EventLog['append'] = async (_, events, expected, withinMs) => {
    tried.push([expected, withinMs]);
    const end = ends[tried.length - 1];
    if (end !== undefined && end !== expected)
      throw logFault('stream_changed', 'It has changed.', { actual: end === 'no_stream' ? -1 : end });
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
    const append = () => Promise.reject(logFault('outcome_unknown', 'Perhaps.'));
    await expect(appendToEnd({ append }, 's', [anEvent()])).rejects.toMatchObject({
      code: 'outcome_unknown',
    });
  });
});
