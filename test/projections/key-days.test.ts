import { randomUUID } from 'node:crypto';
import { findKeyDays, findLastUse, findLastUses } from '../../projections/key-days';
import { logs } from '../../projections/logs';
import type { KeyUse } from '../../src/domain/key-use';
import { TENANT } from '../support/given';
import { loggedSample } from '../support/samples';
import { projected } from './history';

const APPLICATION = randomUUID();
const KEY = randomUUID();

const used = (date: string, more: Partial<KeyUse> = {}, hour = '01'): KeyUse => ({
  applicationId: APPLICATION,
  keyId: KEY,
  date,
  operations: { listLogs: 1 },
  refusals: {},
  missingPermissions: [],
  eventsGivenOut: 0,
  firstAt: `${date}T${hour}:00:00.000Z`,
  lastAt: `${date}T${hour}:30:00.000Z`,
  ...more,
});

const after = (...uses: readonly { readonly use: KeyUse; readonly copies?: number }[]) =>
  projected(
    logs,
    uses
      .flatMap(({ use, copies = 1 }) => {
        const id = randomUUID();
        return Array.from({ length: copies }, () => ({ id, data: { ...use } }));
      })
      .map(({ id, data }, n) => ({
        ...loggedSample({ type: 'KeyUsed', version: 1, data, metadata: { version: 1 } }, n),
        id,
      })),
  );

const AT = '2026-02-03T12:00:00.000Z';

describe('the days of a key', () => {
  it('add up what several events say of a day, each of them once, and what is not in the log yet', async () => {
    const first = { eventsGivenOut: 5, operations: { getTenant: 2 } };
    const second = { refusals: { permission_missing: 2 }, missingPermissions: ['log:read'] };
    const reader = await after(
      { use: used('2026-02-02', {}, '04') },
      { use: used('2026-02-01', first, '03'), copies: 3 },
      { use: used('2026-02-01', second, '02') },
    );
    const unwritten = [used('2026-02-03'), used('2026-02-02', { missingPermissions: ['tenant:read'] }, '05')];
    expect(await findKeyDays(reader, TENANT, KEY, AT, unwritten)).toEqual([
      expect.objectContaining({ date: '2026-02-03' }),
      expect.objectContaining({
        date: '2026-02-02',
        operations: { listLogs: 2 },
        missing_permissions: ['tenant:read'],
      }),
      {
        date: '2026-02-01',
        operations: { getTenant: 2, listLogs: 1 },
        refusals: { permission_missing: 2 },
        missing_permissions: ['log:read'],
        events_given_out: 5,
        first_used_at: '2026-02-01T02:00:00.000Z',
        last_used_at: '2026-02-01T03:30:00.000Z',
      },
    ]);
    expect(await findKeyDays(reader, TENANT, APPLICATION, AT)).toEqual([]);
  });

  it('are the last thirty, however many there were', async () => {
    const dates = Array.from({ length: 40 }, (_, n) =>
      new Date(Date.parse(AT) - n * 86_400_000).toISOString().slice(0, 10),
    );
    const reader = await after(...dates.toReversed().map((date) => ({ use: used(date) })));
    const shown = async (at: string) => (await findKeyDays(reader, TENANT, KEY, at)).map(({ date }) => date);
    expect(await shown(AT)).toEqual(dates.slice(0, 30));
    expect((await reader.get(TENANT, 'key_days', KEY))?.['days']).toHaveLength(30);
    expect(await shown('2026-03-01T00:00:00.000Z')).toEqual([
      '2026-02-03',
      '2026-02-02',
      '2026-02-01',
      '2026-01-31',
    ]);
  });
});

it('the last use of a key is the latest that was accepted', async () => {
  const [other, exporting] = [randomUUID(), randomUUID()];
  const revoked = { operations: {}, refusals: { revoked: 1 } };
  const reader = await after(
    { use: used('2026-02-01') },
    { use: used('2026-01-31') },
    { use: used('2026-02-02', revoked) },
    { use: used('2026-01-30', { keyId: other }) },
    { use: used('2026-02-03', { ...revoked, keyId: randomUUID() }) },
    { use: used('2026-01-29', { operations: {}, eventsGivenOut: 3, keyId: exporting }) },
  );
  const expected = new Map([
    [KEY, '2026-02-01T01:30:00.000Z'],
    [other, '2026-01-30T01:30:00.000Z'],
    [exporting, '2026-01-29T01:30:00.000Z'],
  ]);
  expect(await findLastUses(reader, TENANT, APPLICATION)).toEqual(expected);
  expect(await findLastUse(reader, TENANT, KEY)).toBe(expected.get(KEY));
  expect(await findLastUse(reader, TENANT, APPLICATION)).toBeUndefined();
});
