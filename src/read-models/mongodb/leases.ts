import { randomUUID } from 'node:crypto';
import { monotonicMs, pause } from '../../clock';
import type { MongoConnection } from '../../mongodb/connection';
import type { Leases } from '../read-models';
import { registriesIn, type RegistryDocument, type StoredLease, type StoredRegistry } from './registry';

/**
 * Leases without trusting clocks. A holder renews its lease by writing another `beat`. Whoever has seen the same beat for
 * the lease's length on its own monotonic clock knows that the holder is gone.
 *
 * A lease for longer than MAX_LEASE_MS is renewed from here, so that nobody has to watch longer than that.
 */
const MAX_LEASE_MS = 2_500;
const RENEW_MS = 250;
const LOOK_MS = 50;

/** One that was renewed within this part of its length need not be renewed again. */
const STILL_FRESH = 4;

interface Own {
  readonly holder: string;
  readonly note: string;
  readonly forMs: number;
  readonly renewedAt: number;
  /** Until when it is renewed without being asked. */
  readonly until: number;
}

interface Seen {
  readonly mark: string;
  /** Since when it has looked the same. */
  readonly since: number;
  readonly lookedAt: number;
  /** It was seen to be renewed: it did not look the same a moment before. */
  readonly isRenewed: boolean;
}

/** What this process has seen of leases, on its own clock. */
const watchLeases = () => {
  const seen = new Map<string, Seen>();
  return {
    look: (what: string, { holder, beat, for_ms }: StoredLease): void => {
      const mark = `${holder} ${beat}`;
      const [last, now] = [seen.get(what), monotonicMs()];
      const isRenewed = last !== undefined && now - last.lookedAt < for_ms;
      seen.set(
        what,
        last?.mark === mark ? { ...last, lookedAt: now } : { mark, since: now, lookedAt: now, isRenewed },
      );
    },
    isOver: (what: string, { for_ms }: StoredLease): boolean =>
      monotonicMs() - (seen.get(what)?.since ?? Infinity) >= for_ms,
    isRenewed: (what: string): boolean => seen.get(what)?.isRenewed === true,
  };
};

const pathOf = (what: string): string => {
  if (!/^[\w -]+$/.test(what)) throw new Error(`${what} cannot be the name of a lease.`);
  return `leases.${what}`;
};

export interface MongoLeases extends Leases {
  /** Does anybody hold it? Waits, if it must, until that is certain. */
  isHeld(what: string, now: StoredRegistry): Promise<boolean>;
  close(): void;
}

const storedLease = (holder: string, forMs: number, note: string): StoredLease => ({
  holder,
  beat: randomUUID(),
  for_ms: Math.min(forMs, MAX_LEASE_MS),
  note,
});

/** How leases are written and watched, without knowing which are ours. */
const sharedLeases = (connection: MongoConnection, registry: RegistryDocument) => {
  const registries = registriesIn(connection);
  const watch = watchLeases();
  registry.watch(({ leases = {} }) => {
    for (const [what, lease] of Object.entries(leases)) watch.look(what, lease);
  });

  /** Only if this one holds it. */
  const update = async (what: string, holder: string, change: object): Promise<boolean> => {
    const held = { _id: 'registry' as const, [`${pathOf(what)}.holder`]: holder };
    return (await connection.run(registries.updateOne(held, change))).matchedCount === 1;
  };

  /** At first sight nobody can say whether a holder lives: its next renewal does, or that there is none. */
  const isHeld = async (what: string, now: StoredRegistry): Promise<boolean> => {
    for (let lease = now.leases?.[what]; lease !== undefined;) {
      if (watch.isOver(what, lease)) return false;
      if (watch.isRenewed(what)) return true;
      await pause(LOOK_MS);
      lease = (await registry.read()).leases?.[what];
    }
    return false;
  };

  return {
    isHeld,
    renew: (what: string, holder: string, forMs: number, note: string): Promise<boolean> =>
      update(what, holder, { $set: { [pathOf(what)]: storedLease(holder, forMs, note) } }),
    remove: (what: string, holder: string): Promise<boolean> =>
      update(what, holder, { $unset: { [pathOf(what)]: '' } }),
    take: async (what: string, holder: string, forMs: number, note: string): Promise<boolean> => {
      const isOthers = async (now: StoredRegistry): Promise<boolean> => {
        const lease = now.leases?.[what];
        if (lease === undefined || lease.holder === holder) return false;
        return forMs > MAX_LEASE_MS ? isHeld(what, now) : !watch.isOver(what, lease);
      };
      // Those who wait for a lease ask for it all the time: all of a process are answered by one read.
      if (await isOthers(await registry.readRecent())) return false;
      return registry.change(async (now) =>
        (await isOthers(now))
          ? { gives: false }
          : { set: { [pathOf(what)]: storedLease(holder, forMs, note) }, gives: true },
      );
    },
  };
};

export const mongodbLeases = (connection: MongoConnection, registry: RegistryDocument): MongoLeases => {
  const { isHeld, renew, remove, take } = sharedLeases(connection, registry);
  const own = new Map<string, Own>();

  const renewOwn = async (what: string, one: Own): Promise<void> => {
    if (monotonicMs() >= one.until) return;
    const isStillHeld = await renew(what, one.holder, one.forMs, one.note).catch(() => true);
    if (!isStillHeld && own.get(what) === one) own.delete(what);
  };
  const renewing = setInterval(() => {
    for (const [what, one] of own) if (one.forMs > MAX_LEASE_MS) void renewOwn(what, one);
  }, RENEW_MS).unref();

  const heldNow = async (what: string): Promise<StoredLease | undefined> => {
    const now = await registry.read();
    const lease = now.leases?.[what];
    const mine = own.get(what);
    const isMine = mine !== undefined && mine.holder === lease?.holder && monotonicMs() < mine.until;
    return isMine || (await isHeld(what, now)) ? lease : undefined;
  };

  return {
    lease: async (what, holder, forMs, note = '') => {
      const mine = own.get(what);
      const isSame = mine?.holder === holder && mine.note === note && mine.forMs === forMs;
      const now = monotonicMs();
      if (isSame && now - mine.renewedAt < Math.min(forMs, MAX_LEASE_MS) / STILL_FRESH) return true;
      const isRenewed = mine?.holder === holder && (await renew(what, holder, forMs, note));
      const isDone = isRenewed || (await take(what, holder, forMs, note));
      if (isDone) own.set(what, { holder, note, forMs, renewedAt: now, until: now + forMs });
      else if (mine?.holder === holder) own.delete(what);
      return isDone;
    },
    release: async (what, holder) => {
      if (own.get(what)?.holder === holder) own.delete(what);
      await remove(what, holder);
    },
    leaseHolder: async (what) => (await heldNow(what))?.holder,
    leaseNote: async (what) => (await heldNow(what))?.note,
    isHeld,
    close: () => clearInterval(renewing),
  };
};
