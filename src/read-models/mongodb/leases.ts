import { randomUUID } from 'node:crypto';
import { monotonicMs, pause } from '../../clock';
import type { MongoConnection } from '../../mongodb/connection';
import type { Leases } from '../read-models';
import { registriesIn, type RegistryDocument, type StoredLease, type StoredRegistry } from './registry';

/**
 * Leases that do not depend on synchronized clocks. A holder renews its lease by writing a new `beat`. A process that
 * has seen the same beat for the lease's duration, on its own monotonic clock, knows that the holder is gone.
 *
 * A lease for longer than MAX_LEASE_MS is renewed in the background, so that no one has to watch it for longer than
 * that.
 */
const MAX_LEASE_MS = 2_500;
const RENEW_MS = 250;
const LOOK_MS = 50;

/** A lease renewed within this fraction of its duration (1/n) need not be renewed again. */
const STILL_FRESH = 4;

interface OwnLease {
  readonly holder: string;
  readonly note: string;
  readonly forMs: number;
  readonly renewedAt: number;
  /** Until when it is renewed in the background. */
  readonly until: number;
}

interface Seen {
  readonly mark: string;
  /** Since when it has been unchanged. */
  readonly since: number;
  readonly lookedAt: number;
  /** This process saw it being renewed. */
  readonly isRenewed: boolean;
}

/** Tracks the leases that this process has seen, on its own clock. */
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
    isExpired: (what: string, { for_ms }: StoredLease): boolean =>
      monotonicMs() - (seen.get(what)?.since ?? Infinity) >= for_ms,
    isRenewed: (what: string): boolean => seen.get(what)?.isRenewed === true,
  };
};

const pathOf = (what: string): string => {
  if (!/^[\w -]+$/.test(what)) throw new Error(`${what} cannot be the name of a lease.`);
  return `leases.${what}`;
};

export interface MongoLeases extends Leases {
  /** Whether it is held. Waits, if necessary, until that is certain. */
  isHeld(what: string, now: StoredRegistry): Promise<boolean>;
  close(): void;
}

const storedLease = (holder: string, forMs: number, note: string): StoredLease => ({
  holder,
  beat: randomUUID(),
  for_ms: Math.min(forMs, MAX_LEASE_MS),
  note,
});

/** Writes and watches leases, whoever holds them. */
const sharedLeases = (connection: MongoConnection, registry: RegistryDocument) => {
  const registries = registriesIn(connection);
  const watch = watchLeases();
  registry.watch(({ leases = {} }) => {
    for (const [what, lease] of Object.entries(leases)) watch.look(what, lease);
  });

  /** Only if `holder` holds it. */
  const update = async (what: string, holder: string, change: object): Promise<boolean> => {
    const held = { _id: 'registry' as const, [`${pathOf(what)}.holder`]: holder };
    return (await connection.run(registries.updateOne(held, change))).matchedCount === 1;
  };

  /** At first sight it is unknown whether the holder is alive: wait for a renewal, or for expiry. */
  const isHeld = async (what: string, now: StoredRegistry): Promise<boolean> => {
    for (let lease = now.leases?.[what]; lease !== undefined;) {
      if (watch.isExpired(what, lease)) return false;
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
      const isHeldByOther = async (now: StoredRegistry): Promise<boolean> => {
        const lease = now.leases?.[what];
        if (lease === undefined || lease.holder === holder) return false;
        return forMs > MAX_LEASE_MS ? isHeld(what, now) : !watch.isExpired(what, lease);
      };
      // Processes waiting for leases ask constantly, so one read answers for all of them.
      if (await isHeldByOther(await registry.readRecent())) return false;
      return registry.change(async (now) =>
        (await isHeldByOther(now))
          ? { result: false }
          : { set: { [pathOf(what)]: storedLease(holder, forMs, note) }, result: true },
      );
    },
  };
};

/**
 * Does what a holder does with a lease in call order: the server may execute commands of two connections in any order,
 * and a renewal that comes after the release would take the lease again.
 */
const inCallOrder = () => {
  const last = new Map<string, Promise<unknown>>();
  return <T>(what: string, holder: string, work: () => Promise<T>): Promise<T> => {
    const name = `${what} ${holder}`;
    const done = (last.get(name) ?? Promise.resolve()).then(work);
    const ended = done
      .catch(() => undefined)
      .finally(() => {
        if (last.get(name) === ended) last.delete(name);
      });
    last.set(name, ended);
    return done;
  };
};

export const mongodbLeases = (connection: MongoConnection, registry: RegistryDocument): MongoLeases => {
  const { isHeld, renew, remove, take } = sharedLeases(connection, registry);
  const own = new Map<string, OwnLease>();
  const inOrder = inCallOrder();

  const renewOwn = async (what: string, lease: OwnLease): Promise<void> => {
    if (own.get(what) !== lease || monotonicMs() >= lease.until) return;
    const isStillHeld = await renew(what, lease.holder, lease.forMs, lease.note).catch(() => true);
    if (!isStillHeld) own.delete(what);
  };
  const renewing = setInterval(() => {
    for (const [what, lease] of own)
      if (lease.forMs > MAX_LEASE_MS) void inOrder(what, lease.holder, () => renewOwn(what, lease));
  }, RENEW_MS).unref();

  const heldNow = async (what: string): Promise<StoredLease | undefined> => {
    const now = await registry.read();
    const lease = now.leases?.[what];
    const current = own.get(what);
    const isOurs = current !== undefined && current.holder === lease?.holder && monotonicMs() < current.until;
    return isOurs || (await isHeld(what, now)) ? lease : undefined;
  };

  const takeOrRenew = async (what: string, holder: string, forMs: number, note: string): Promise<boolean> => {
    const current = own.get(what);
    const isUnchanged = current?.holder === holder && current.note === note && current.forMs === forMs;
    const now = monotonicMs();
    if (isUnchanged && now - current.renewedAt < Math.min(forMs, MAX_LEASE_MS) / STILL_FRESH) return true;
    const isRenewed = current?.holder === holder && (await renew(what, holder, forMs, note));
    const isHolder = isRenewed || (await take(what, holder, forMs, note));
    if (isHolder) own.set(what, { holder, note, forMs, renewedAt: now, until: now + forMs });
    else if (current?.holder === holder) own.delete(what);
    return isHolder;
  };

  return {
    lease: (what, holder, forMs, note = '') =>
      inOrder(what, holder, () => takeOrRenew(what, holder, forMs, note)),
    release: (what, holder) =>
      inOrder(what, holder, async () => {
        if (own.get(what)?.holder === holder) own.delete(what);
        await remove(what, holder);
      }),
    leaseHolder: async (what) => (await heldNow(what))?.holder,
    leaseNote: async (what) => (await heldNow(what))?.note,
    isHeld,
    close: () => clearInterval(renewing),
  };
};
