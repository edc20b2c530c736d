import { findKeyDays, keyDayView, keyUsed } from '../../projections/key-days';
import type { Document, Reader } from '../../projections/projector';
import type { KeyUse } from '../../src/domain/key-use';
import { TENANT } from './given';

const used = (date: string, keyId = 'a', count = 1): KeyUse => ({
  applicationId: 'x',
  keyId,
  date,
  operations: { listLogs: count },
  failed: 0,
  eventsGivenOut: 0,
  firstAt: `${date}T01:00:00.000Z`,
  lastAt: `${date}T02:00:00.000Z`,
});

/** The documents after these events, and how many of them a query reads. */
const given = (...events: readonly KeyUse[]) => {
  const documents = new Map<string, Document | undefined>();
  let reads = 0;
  for (const data of events) {
    const { touches, apply } = keyUsed({ type: 'KeyUsed', data });
    const keys = touches.map(({ collection, key }) => `${collection} ${key}`);
    apply(keys.map((key) => documents.get(key))).forEach((next, at) => documents.set(keys[at]!, next));
  }
  const reader = {
    get: async (_: string, collection: string, key: string) => {
      reads += 1;
      return documents.get(`${collection} ${key}`);
    },
  } as unknown as Reader;
  return { reader, reads: () => reads };
};

describe('the days on which a key was used', () => {
  it('are found by date, across the end of a month, with one read per month', async () => {
    const { reader, reads } = given(
      used('2026-01-31'),
      used('2026-02-01'),
      used('2026-02-03'),
      used('2026-02-01', 'b', 7),
    );
    const dates = ['2026-02-03', '2026-02-02', '2026-02-01', '2026-01-31', '2026-01-30'];
    expect(await findKeyDays(reader, TENANT, 'a', dates)).toEqual(
      ['2026-02-03', '2026-02-01', '2026-01-31'].map((date) => keyDayView(used(date))),
    );
    expect(reads()).toBe(2);
    expect(await findKeyDays(reader, TENANT, 'b', dates)).toEqual([keyDayView(used('2026-02-01', 'b', 7))]);
    expect(await findKeyDays(reader, TENANT, 'c', dates)).toEqual([]);
  });

  it('count a second copy of an event once', async () => {
    const { reader } = given(used('2026-01-31'), used('2026-01-31'));
    expect(await findKeyDays(reader, TENANT, 'a', ['2026-01-31'])).toEqual([keyDayView(used('2026-01-31'))]);
  });
});
