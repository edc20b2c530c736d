import { randomUUID } from 'node:crypto';
import { pause } from '../../src/async/clock';
import type { KeyUsesOptions } from '../../src/key-uses/batched-uses';
import type { KeyUses, RequestWithKey } from '../../src/key-uses/key-uses';
import { until } from '../support/waiting';

const [TENANT, OTHER, APPLICATION] = [randomUUID(), randomUUID(), randomUUID()];

export const time = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
const DATE = '2026-01-01';

/** A request with this key; more members may be given. */
export const request = (
  tenantId: string,
  keyId: string,
  at: string,
  what: RequestWithKey['what'] = { operation: 'getTenant' },
  address?: string,
): RequestWithKey => ({ tenantId, applicationId: APPLICATION, keyId, at, what, address });

/** Where uses are stored: another process opens the same place. */
export type Place = (options?: KeyUsesOptions) => KeyUses;

/** What every store of the uses of keys must do. */
export const keyUsesContract = (name: string, freshPlace: () => Promise<Place>): void =>
  describe(`uses of keys in ${name}`, () => {
    const opened: KeyUses[] = [];
    const fresh = async (): Promise<Place> => {
      const place = await freshPlace();
      return (options) => {
        const uses = place(options);
        opened.push(uses);
        return uses;
      };
    };
    afterEach(async () => {
      for (const one of opened.splice(0)) await one.close();
    });

    it('are stored when the process ends, for their own tenant only', async () => {
      const open = await fresh();
      const uses = open();
      uses.used(request(TENANT, 'a', time(1)));
      uses.used(request(TENANT, 'b', time(2)));
      uses.used(request(OTHER, 'c', time(3)));
      await uses.close();
      const later = open();
      expect(await later.lastUses(TENANT)).toEqual(
        new Map([
          ['a', time(1)],
          ['b', time(2)],
        ]),
      );
      expect(await later.lastUses(OTHER)).toEqual(new Map([['c', time(3)]]));
      expect(await later.lastUses(TENANT, ['b', 'c', 'd'])).toEqual(new Map([['b', time(2)]]));
      expect(await later.lastUses(TENANT, [])).toEqual(new Map());
      expect(await later.lastUses(randomUUID())).toEqual(new Map());
      expect(await later.days(OTHER, 'a', [DATE])).toEqual([]);
      expect(await later.days(TENANT, 'a', ['2026-01-02'])).toEqual([]);
    });

    it('of one day are added up, by operation, in one process and in several', async () => {
      const open = await fresh();
      const [one, two] = [open(), open()];
      one.used(request(TENANT, 'a', time(5), { operation: 'listLogs' }, '192.0.2.1'));
      one.used(request(TENANT, 'a', time(6), 'failed', '192.0.2.2'));
      one.used(request(TENANT, 'a', time(7), { eventsGivenOut: 500 }, '192.0.2.3'));
      await one.close();
      two.used(request(TENANT, 'a', time(3), { operation: 'listLogs' }));
      two.used(request(TENANT, 'a', time(4), { operation: 'getTenant' }));
      two.used(request(TENANT, 'a', time(4), 'failed'));
      two.used(request(TENANT, 'a', time(4), { eventsGivenOut: 5 }));
      await two.close();
      const expected = {
        tenantId: TENANT,
        applicationId: APPLICATION,
        keyId: 'a',
        date: DATE,
        operations: { listLogs: 2, getTenant: 1 },
        failed: 2,
        eventsGivenOut: 505,
        firstAt: time(3),
        lastAt: time(7),
        address: '192.0.2.3',
      };
      expect(await open().days(TENANT, 'a', [DATE])).toEqual([expected]);
    });

    it('belong to the day on which they happened, also if they are written later', async () => {
      const open = await fresh();
      const uses = open();
      for (const at of ['2026-01-31T23:59:59.999Z', '2026-02-01T00:00:00.000Z', '2026-02-01T00:00:00.001Z'])
        uses.used(request(TENANT, 'a', at));
      await uses.close();
      const days = await open().days(TENANT, 'a', ['2026-01-31', '2026-02-01', '2026-02-02']);
      expect(days.map(({ date, operations }) => [date, operations])).toEqual([
        ['2026-01-31', { getTenant: 1 }],
        ['2026-02-01', { getTenant: 2 }],
      ]);
    });

    it('of days that have ended are found page by page, oldest first, and removed one by one', async () => {
      const open = await fresh();
      const uses = open();
      for (const date of ['2026-01-03', '2026-01-01', '2026-01-02'])
        for (const keyId of ['b', 'a']) uses.used(request(TENANT, keyId, `${date}T12:00:00.000Z`));
      await uses.close();
      const later = open();
      const names = (days: readonly { date: string; keyId: string }[]) =>
        days.map(({ date, keyId }) => `${date} ${keyId}`);
      const first = await later.daysBefore('2026-01-03', 3);
      expect(names(first)).toEqual(['2026-01-01 a', '2026-01-01 b', '2026-01-02 a']);
      expect(names(await later.daysBefore('2026-01-03', 3, first.at(-1)))).toEqual(['2026-01-02 b']);
      await later.remove(first.slice(1));
      expect(names(await later.daysBefore('2026-01-04', 9))).toEqual([
        '2026-01-01 a',
        '2026-01-02 b',
        '2026-01-03 a',
        '2026-01-03 b',
      ]);
      await later.remove([]);
      expect((await later.lastUses(TENANT)).size).toBe(2);
    });

    it('are written while the process runs', async () => {
      const open = await fresh();
      open().used(request(TENANT, 'a', time(1)));
      const reader = open();
      const end = Date.now() + 10_000;
      while ((await reader.lastUses(TENANT).catch(() => new Map())).size === 0 && Date.now() < end)
        await pause(20);
      expect((await reader.lastUses(TENANT)).get('a')).toBe(time(1));
      await until(async () => (await reader.days(TENANT, 'a', [DATE])).length === 1);
    });

    it('of several processes are merged: the latest one counts', async () => {
      const open = await fresh();
      for (const second of [5, 3]) {
        const uses = open();
        uses.used(request(TENANT, 'a', time(second)));
        await uses.close();
      }
      expect((await open().lastUses(TENANT)).get('a')).toBe(time(5));
    });
  });
