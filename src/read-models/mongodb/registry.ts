import type { UpdateFilter } from 'mongodb';
import { monotonicMs } from '../../clock';
import { fault } from '../../fault';
import type { MongoConnection } from '../../mongodb/connection';
import { rebuildCommand } from '../damage';
import { generationNamed, type GenerationId, type Pointer, type Registry } from '../read-models';
import { controlsIn } from './control-document';
import { REGISTRY } from './layout';

/** A single document with the live and removed generations and the leases. */
export interface StoredRegistry {
  readonly _id: 'registry';
  /** The version of this layout. */
  readonly format: number;
  /** The identity of the log that all generations are built from. Empty: not given. */
  readonly log: string;
  /** The number of changes, not counting renewed leases. */
  readonly v: number;
  /** By `<projection>_v<version>`, like `left`, `removed` and `numbers`. */
  readonly pointers?: Readonly<Record<string, Pointer>>;
  /** When generations ceased to be live, by number. */
  readonly left?: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly removed?: Readonly<Record<string, readonly number[]>>;
  /** Why generations are damaged, by number. */
  readonly damaged?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** The last number assigned. */
  readonly numbers?: Readonly<Record<string, number>>;
  readonly leases?: Readonly<Record<string, StoredLease>>;
  readonly retries?: { readonly count: number; readonly tenant_id?: string };
}

export interface StoredLease {
  readonly holder: string;
  /** Changes at each renewal. */
  readonly beat: string;
  readonly for_ms: number;
  readonly note: string;
}

export const FORMAT = 1;

export const registriesIn = ({ db }: MongoConnection) => db.collection<StoredRegistry>(REGISTRY);

/** An update and the result of `change`. Without `set` and `unset`, nothing is written. */
export interface Change<T> {
  readonly set?: Readonly<Record<string, unknown>>;
  readonly unset?: readonly string[];
  readonly result: T;
}

/** The registry as one process sees it. */
export interface RegistryDocument {
  /** Calls the watcher with every version of the registry that is read. */
  watch(watcher: (now: StoredRegistry) => void): void;
  /** Concurrent calls share one read. */
  read(): Promise<StoredRegistry>;
  /** The same, or the result of a read that started within RECENT_MS. */
  readRecent(): Promise<StoredRegistry>;
  /** Compare-and-set: calls `decide` again if the registry has changed in the meantime. */
  change<T>(decide: (now: StoredRegistry) => Promise<Change<T>> | Change<T>): Promise<T>;
}

/** Pointers and the generations live before are read in quick succession. */
const RECENT_MS = 20;

export const registryDocument = (connection: MongoConnection): RegistryDocument => {
  const registries = registriesIn(connection);
  const watchers: ((now: StoredRegistry) => void)[] = [];
  let next: Promise<StoredRegistry> | undefined;

  const readNow = async (): Promise<StoredRegistry> => {
    next = undefined;
    const found = await connection.run(registries.findOne({ _id: 'registry' }));
    if (found === null)
      throw fault(
        'read_models_unavailable',
        `The registry of the read models in ${connection.place} is gone: was the database dropped? Restart the service, or run: ${rebuildCommand('--all')}`,
      );
    for (const watch of watchers) watch(found);
    return found;
  };
  let last: { readonly at: number; readonly found: Promise<StoredRegistry> } | undefined;

  const read = (): Promise<StoredRegistry> => {
    if (next !== undefined) return next;
    next = Promise.resolve().then(readNow);
    last = { at: monotonicMs(), found: next };
    return next;
  };

  return {
    watch: (watcher) => void watchers.push(watcher),
    read,
    readRecent: () => (last !== undefined && monotonicMs() - last.at < RECENT_MS ? last.found : read()),
    change: async (decide) => {
      for (;;) {
        const now = await readNow();
        const { set, unset = [], result } = await decide(now);
        if (set === undefined && unset.length === 0) return result;
        const update: UpdateFilter<StoredRegistry> = { $set: { ...set, v: now.v + 1 } as never };
        if (unset.length > 0) update.$unset = Object.fromEntries(unset.map((path) => [path, ''])) as never;
        const { matchedCount } = await connection.run(
          registries.updateOne({ _id: 'registry', v: now.v }, update),
        );
        last = undefined;
        if (matchedCount === 1) return result;
      }
    },
  };
};

const lineOf = (projection: string, version: number): string => `${projection}_v${version}`;

export const isRemovedIn = (
  now: StoredRegistry,
  { projection, version, generation }: GenerationId,
): boolean => now.removed?.[lineOf(projection, version)]?.includes(generation) === true;

export const damageIn = (
  now: StoredRegistry,
  { projection, version, generation }: GenerationId,
): string | undefined => now.damaged?.[lineOf(projection, version)]?.[generation];

export const isPointedAtIn = (
  now: StoredRegistry,
  { projection, version, generation }: GenerationId,
): boolean => {
  const pointer = now.pointers?.[lineOf(projection, version)];
  return pointer?.live === generation || pointer?.previous === generation;
};

/** Once: the first reason is kept. */
export const markDamaged = ({ change }: RegistryDocument, id: GenerationId, why: string): Promise<void> =>
  change((now) => {
    if (damageIn(now, id) !== undefined) return { result: undefined };
    return {
      set: { [`damaged.${lineOf(id.projection, id.version)}.${id.generation}`]: why },
      result: undefined,
    };
  });

const isEqual = (one: Pointer | undefined, other: Pointer | undefined): boolean =>
  one?.live === other?.live && one?.previous === other?.previous;

const plain = ({ live, previous }: Pointer): Pointer => ({
  live,
  ...(previous === undefined ? {} : { previous }),
});

/** The clocks of several machines are assumed to differ by less than this. */
const MAX_CLOCK_SKEW_MS = 60_000;
const MAX_AGE_MS = 3_600_000;

/**
 * How long ago a generation ceased to be live, as observed by this process on its own clock. If it did not observe it,
 * it counts as just now, unless it was long ago by any clock.
 */
const ageOfLeft = () => {
  const seen = new Map<string, number>();
  return (name: string, at: number): number => {
    const mark = `${name} ${at}`;
    const since = seen.get(mark) ?? monotonicMs();
    seen.set(mark, since);
    const byClocks = Math.abs(Date.now() - at);
    return Math.max(monotonicMs() - since, byClocks > MAX_CLOCK_SKEW_MS ? byClocks : 0);
  };
};

/** The entries of `left` that are so old, by any clock, that they can be deleted. */
const longLeft = ({ left }: StoredRegistry, line: string, except: string): readonly string[] =>
  Object.entries(left?.[line] ?? {})
    .filter(([, at]) => Math.abs(Date.now() - at) > MAX_AGE_MS)
    .map(([number]) => `left.${line}.${number}`)
    .filter((path) => path !== except);

type Held = (what: string, now: StoredRegistry) => Promise<boolean>;

const deciding = (
  connection: MongoConnection,
  { read, readRecent, change }: RegistryDocument,
  isHeld: Held,
) =>
  ({
    point: (projection, version, to, believed) =>
      change((now) => {
        const line = lineOf(projection, version);
        const pointer = now.pointers?.[line];
        const named = [to.live, ...(to.previous === undefined ? [] : [to.previous])];
        const isGone = named.some((generation) => isRemovedIn(now, { projection, version, generation }));
        if (isGone || !isEqual(pointer, believed)) return { result: false };
        const leaves = `left.${line}.${pointer?.live}`;
        const isLeft = pointer !== undefined && pointer.live !== to.live;
        return {
          set: { [`pointers.${line}`]: plain(to), ...(isLeft ? { [leaves]: Date.now() } : {}) },
          unset: longLeft(now, line, leaves),
          result: true,
        };
      }),
    markRemoved: (id, unless) =>
      change(async (now) => {
        const { projection, version, generation } = id;
        const line = lineOf(projection, version);
        const pointer = now.pointers?.[line];
        if (await isHeld(unless.held, now)) return { result: false };
        if (pointer?.live === generation && unless.live) return { result: false };
        const marks = isRemovedIn(now, id) ? [] : [generation];
        const set = { [`removed.${line}`]: [...(now.removed?.[line] ?? []), ...marks] };
        if (pointer?.live === generation) return { set, unset: [`pointers.${line}`], result: true };
        if (pointer?.previous !== generation) return { set, result: true };
        return { set: { ...set, [`pointers.${line}`]: { live: pointer.live } }, result: true };
      }),
    nextNumber: (projection, version) =>
      change(async (now) => {
        const line = lineOf(projection, version);
        const existing = (await generationsIn(connection))
          .filter((id) => lineOf(id.projection, id.version) === line)
          .map((id) => id.generation);
        const known = [now.numbers?.[line] ?? 1, ...existing, ...(now.removed?.[line] ?? [])];
        const number = Math.max(...known) + 1;
        return { set: { [`numbers.${line}`]: number }, result: number };
      }),
    requestRetry: (tenantId) =>
      change<void>(({ retries }) => ({
        set: {
          retries: {
            count: (retries?.count ?? 0) + 1,
            ...(tenantId === undefined ? {} : { tenant_id: tenantId }),
          },
        },
        result: undefined,
      })),
    isRemoved: async (id) => isRemovedIn(await read(), id),
    retryRequests: async () => {
      const { count = 0, tenant_id: tenantId } = (await readRecent()).retries ?? {};
      return { count, ...(tenantId === undefined ? {} : { tenantId }) };
    },
  }) satisfies Partial<Registry>;

/** Which of the generations beside a new registry were live, or even complete, is not known any more. */
export const damageWithoutRegistry = async (
  connection: MongoConnection,
): Promise<NonNullable<StoredRegistry['damaged']>> => {
  const damage: Record<string, Record<string, string>> = {};
  for (const { projection, version, generation } of await generationsIn(connection)) {
    const line = (damage[lineOf(projection, version)] ??= {});
    line[generation] = 'the registry of the read models was lost.';
  }
  return damage;
};

const generationsIn = async (connection: MongoConnection): Promise<readonly GenerationId[]> => {
  const found = await connection.run(
    controlsIn(connection)
      .find({}, { projection: { _id: 1 } })
      .toArray(),
  );
  return found.map(({ _id }) => generationNamed(_id)).filter((id) => id !== undefined);
};

export const registryOf = (connection: MongoConnection, document: RegistryDocument, isHeld: Held) => {
  const ageOf = ageOfLeft();
  return {
    ...deciding(connection, document, isHeld),
    generations: () => generationsIn(connection),
    damageOf: async (id) => damageIn(await document.readRecent(), id),
    pointer: async (projection, version) => {
      const found = (await document.read()).pointers?.[lineOf(projection, version)];
      return found === undefined ? undefined : plain(found);
    },
    liveLately: async (projection, version, withinMs) => {
      const line = lineOf(projection, version);
      const { pointers, left } = await document.readRecent();
      return Object.entries(left?.[line] ?? {})
        .map(([number, at]) => ({ generation: Number(number), age: ageOf(`${line} ${number}`, at) }))
        .filter(({ generation, age }) => generation !== pointers?.[line]?.live && age < withinMs)
        .map(({ generation }) => generation);
    },
  } satisfies Omit<Registry, 'drop' | 'lease' | 'release' | 'leaseHolder' | 'leaseNote'>;
};
