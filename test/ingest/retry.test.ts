import { fault } from '../../src/fault';
import { retrying } from '../../src/ingest/retry';

const failing = (times: number, error: Error) => {
  let calls = 0;
  return {
    calls: () => calls,
    action: async () => {
      calls += 1;
      if (calls <= times) throw error;
      return 'done';
    },
  };
};

const away = fault('log_unavailable', 'The event store is away.');

describe('retrying', () => {
  it.each(['log_unavailable', 'outcome_unknown', 'read_models_unavailable', 'log_set_back'] as const)(
    'repeats what fails with %s',
    async (code) => {
      const { action, calls } = failing(2, fault(code, 'Away.'));
      expect(await retrying(10_000, () => undefined)(action)).toBe('done');
      expect(calls()).toBe(3);
    },
  );

  it.each([
    ['for another reason', fault('stream_changed', 'Changed.')],
    ['with an error of the program', new TypeError('oops')],
    ['for good', fault('log_unavailable', 'Refused.', { isFinal: true })],
  ])('does not repeat what fails %s', async (_, error) => {
    const { action, calls } = failing(1, error);
    await expect(retrying(10_000, () => undefined)(action)).rejects.toBe(error);
    expect(calls()).toBe(1);
  });

  it('ends after its time', async () => {
    const { action, calls } = failing(100, away);
    await expect(retrying(500, () => undefined)(action)).rejects.toBe(away);
    expect(calls()).toBeLessThan(5);
  });

  it('tells once each time that a store is away', async () => {
    const told: unknown[] = [];
    const withRetry = retrying(10_000, (error) => told.push(error));
    const actions = [failing(2, away), failing(2, away)].map(({ action }) => withRetry(action));
    await Promise.all(actions);
    expect(told).toEqual([away]);
    await withRetry(failing(1, away).action);
    expect(told).toEqual([away, away]);
  });
});
