import { randomUUID } from 'node:crypto';
import { pause } from '../../src/clock';
import type { KeyUsesOptions } from '../../src/key-uses/gathered-uses';
import type { KeyUses } from '../../src/key-uses/key-uses';

const [TENANT, OTHER] = [randomUUID(), randomUUID()];

export const time = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();

/** Where last uses are stored: another process opens the same place. */
export type Place = (options?: KeyUsesOptions) => KeyUses;

/** What every store of last uses must do. */
export const keyUsesContract = (name: string, freshPlace: () => Promise<Place>): void =>
  describe(`last uses of keys in ${name}`, () => {
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
      uses.used(TENANT, 'a', time(1));
      uses.used(TENANT, 'b', time(2));
      uses.used(OTHER, 'c', time(3));
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
    });

    it('are written at most once per period for each key', async () => {
      const open = await fresh();
      const uses = open({ periodMs: 60_000 });
      for (let second = 0; second < 50; second += 1) uses.used(TENANT, 'a', time(second));
      await uses.close();
      expect((await open().lastUses(TENANT)).get('a')).toBe(time(0));
      const often = open({ periodMs: 0 });
      for (let second = 0; second < 50; second += 1) often.used(TENANT, 'a', time(second));
      await often.close();
      expect((await open().lastUses(TENANT)).get('a')).toBe(time(49));
    });

    it('are written while the process runs', async () => {
      const open = await fresh();
      open().used(TENANT, 'a', time(1));
      const reader = open();
      const end = Date.now() + 10_000;
      while ((await reader.lastUses(TENANT).catch(() => new Map())).size === 0 && Date.now() < end)
        await pause(20);
      expect((await reader.lastUses(TENANT)).get('a')).toBe(time(1));
    });

    it('of several processes are merged: the latest one counts', async () => {
      const open = await fresh();
      for (const second of [5, 3]) {
        const uses = open();
        uses.used(TENANT, 'a', time(second));
        await uses.close();
      }
      expect((await open().lastUses(TENANT)).get('a')).toBe(time(5));
    });

    it('take memory for a maximum number of keys only', async () => {
      const open = await fresh();
      const uses = open({ maxKeys: 2 });
      for (const keyId of ['a', 'b', 'c', 'a']) uses.used(TENANT, keyId, time(keyId === 'a' ? 9 : 1));
      await uses.close();
      expect((await open().lastUses(TENANT)).size).toBe(3);
    });
  });
