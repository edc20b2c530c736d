import type { Document as MongoDocument } from 'mongodb';
import { fault } from '../../fault';
import type { MongoConnection } from '../../mongodb/connection';
import { insertOnce } from '../../mongodb/duplicates';
import { BEING_REMOVED, REBUILD } from '../damage';
import {
  generationName,
  generationNamed,
  type GenerationId,
  type HeldLease,
  type Registry,
  type RegistryState,
  type RemovalGuard,
} from '../read-models';
import { generationOf, REGISTRY } from './layout';

/** A single document with all generations and leases. Its times are those of the server. */
export interface StoredRegistry {
  readonly _id: typeof REGISTRY_ID;
  /** The identity of the log that all generations are built from. */
  readonly log: string;
  /** The number of changes of generations. */
  readonly v: number;
  /** By name. */
  readonly generations?: Readonly<Record<string, StoredRow>>;
  /** By `<projection>_v<version>`. */
  readonly live?: Readonly<Record<string, string>>;
  readonly leases?: Readonly<Record<string, HeldLease & { readonly until: Date }>>;
  readonly retries?: { readonly count: number; readonly tenant_id?: string };
}

interface StoredRow {
  readonly left_at?: Date;
  readonly damage?: string;
  /** When its creation began. While this is set, nobody else may use it. */
  readonly creating_since?: Date;
}

/** As read, with the time of the server. */
type Found = StoredRegistry & { readonly now: Date };

export const REGISTRY_ID = 'registry';

/** Short, because another process waits this long until it takes over. */
const LEASE_MS = 3_000;

export const registriesIn = ({ db }: MongoConnection) => db.collection<StoredRegistry>(REGISTRY);

/** The registry as one process sees it. */
export interface RegistryDocument {
  /** Never joins a read that started before the call; concurrent calls share one. */
  read(): Promise<Found>;
  /**
   * Compare-and-set: `decide` returns the stages of an update, or undefined to change nothing, and is called again if the
   * registry has changed in the meantime. Returns whether it was changed.
   */
  change(decide: (now: Found) => readonly MongoDocument[] | undefined): Promise<boolean>;
  /** Changes it, whatever it is, and returns the result. */
  update(stages: readonly MongoDocument[]): Promise<StoredRegistry>;
}

/** Which of the generations beside a new registry were live, or even complete, is not known any more. */
const rowsOfUnknown = async ({
  db,
}: MongoConnection): Promise<NonNullable<StoredRegistry['generations']>> => {
  const listed = await db.listCollections({}, { nameOnly: true }).toArray();
  const found = listed.map(({ name }) => generationOf(name)).filter((id) => id !== undefined);
  return Object.fromEntries(
    found.map((id) => [generationName(id), { damage: 'the registry that listed it was lost.' }]),
  );
};

const gone = ({ place }: MongoConnection): Error =>
  fault(
    'read_models_unavailable',
    `The registry of the read models in ${place} is gone: was the database dropped? Restart the service, or run: ${REBUILD}`,
  );

const empty = (log: string) => ({ _id: REGISTRY_ID, log }) as const;

/** While there is no registry, nothing exists. The first change creates it. */
export const registryDocument = (connection: MongoConnection, log: string): RegistryDocument => {
  const registries = registriesIn(connection);
  let next: Promise<Found> | undefined;
  /** Once seen, it must be there. */
  let isKnown = false;

  const create = async (): Promise<void> => {
    if (isKnown) throw gone(connection);
    const generations = await connection.run(rowsOfUnknown(connection));
    await connection.run(insertOnce(registries, { ...empty(log), v: 0, generations }));
  };
  const readNow = async (): Promise<Found> => {
    next = undefined;
    const stages = [{ $match: { _id: REGISTRY_ID } }, { $set: { now: '$$NOW' } }];
    const [found] = await connection.run(registries.aggregate<Found>(stages).toArray());
    if (found === undefined && isKnown) throw gone(connection);
    isKnown = found !== undefined;
    return found ?? { ...empty(log), v: -1, now: new Date() };
  };

  return {
    read: () => (next ??= Promise.resolve().then(readNow)),
    change: async (decide) => {
      for (;;) {
        const now = await readNow();
        const stages = decide(now);
        if (stages === undefined) return false;
        if (!isKnown) await create();
        const { matchedCount } = await connection.run(
          registries.updateOne({ _id: REGISTRY_ID, v: now.v }, [...stages, { $set: { v: now.v + 1 } }]),
        );
        if (matchedCount === 1) return true;
      }
    },
    update: async (stages) => {
      for (;;) {
        const found = await connection.run(
          registries.findOneAndUpdate({ _id: REGISTRY_ID }, [...stages], { returnDocument: 'after' }),
        );
        if (found !== null) return found;
        await create();
      }
    },
  };
};

const versionName = ({ projection, version }: Pick<GenerationId, 'projection' | 'version'>): string =>
  `${projection}_v${version}`;

/** Undefined: there is no such generation. */
export const rowOf = ({ generations }: StoredRegistry, id: GenerationId) => generations?.[generationName(id)];

/** A value that the server must not take for an expression. */
const literal = (value: unknown) => ({ $literal: value });

/** Once: the first reason is kept. */
export const markDamaged = async ({ change }: RegistryDocument, id: GenerationId, why: string) =>
  void (await change((now) => {
    const row = rowOf(now, id);
    if (row === undefined || row.damage !== undefined) return undefined;
    return [{ $set: { [`generations.${generationName(id)}.damage`]: literal(why) } }];
  }));

/** Adds a generation that nobody sees before `endCreation`. */
export const beginCreation = async ({ change }: RegistryDocument, id: GenerationId) =>
  void (await change((now) =>
    rowOf(now, id) === undefined
      ? [{ $set: { [`generations.${generationName(id)}`]: { creating_since: '$$NOW' } } }]
      : undefined,
  ));

export const endCreation = async ({ change }: RegistryDocument, id: GenerationId) =>
  void (await change((now) => {
    const isBegun = rowOf(now, id)?.creating_since !== undefined;
    return isBegun ? [{ $unset: `generations.${generationName(id)}.creating_since` }] : undefined;
  }));

/** Whoever takes longer to create a generation was killed. */
const MAX_CREATION_MS = 60_000;

/** Without expired ones, and without those that seem to last longer than any can: then the server's clock was set back. */
const heldIn = ({ leases = {}, now }: Found): ReadonlyMap<string, HeldLease> =>
  new Map(
    Object.entries(leases)
      .filter(([, { until }]) => until > now && until.getTime() <= now.getTime() + LEASE_MS)
      .map(([what, { holder, note }]) => [what, { holder, note }]),
  );

const ageOf = ({ now }: Found, at: Date | undefined): number | undefined =>
  at === undefined ? undefined : Math.abs(now.getTime() - at.getTime());

const stateOf = (found: Found): RegistryState => {
  const { generations = {}, live = {}, retries } = found;
  return {
    generations: Object.entries(generations).flatMap(([name, { left_at, creating_since, ...row }]) => {
      const id = generationNamed(name);
      const age = ageOf(found, creating_since);
      if (id === undefined || (age !== undefined && age < MAX_CREATION_MS)) return [];
      const left = ageOf(found, left_at);
      const damage = row.damage ?? (age === undefined ? undefined : 'its creation was interrupted.');
      return {
        ...id,
        isLive: live[versionName(id)] === id.generation,
        ...(left === undefined ? {} : { leftMs: left }),
        ...(damage === undefined ? {} : { damage }),
      };
    }),
    leases: heldIn(found),
    retries: {
      count: retries?.count ?? 0,
      ...(retries?.tenant_id === undefined ? {} : { tenantId: retries.tenant_id }),
    },
  };
};

const isRefused = (now: Found, id: GenerationId, unless: RemovalGuard): boolean => {
  const held = heldIn(now);
  if (unless.held?.some((what) => held.has(what)) === true) return true;
  if (unless.live === true && now.live?.[versionName(id)] === id.generation) return true;
  return (ageOf(now, rowOf(now, id)?.left_at) ?? Infinity) < (unless.leftWithinMs ?? 0);
};

/** Marks it, so that nobody uses it any more, and then it can be deleted. False: something refuses it. */
export const beginRemoval = (
  { change }: RegistryDocument,
  id: GenerationId,
  unless: RemovalGuard,
): Promise<boolean> =>
  change((now) => {
    const row = rowOf(now, id);
    if (row === undefined || isRefused(now, id, unless)) return undefined;
    const mark = literal(row.damage ?? BEING_REMOVED);
    const isLive = now.live?.[versionName(id)] === id.generation;
    return [
      { $set: { [`generations.${generationName(id)}.damage`]: mark } },
      ...(isLive ? [{ $unset: `live.${versionName(id)}` }] : []),
    ];
  });

export const endRemoval = async ({ update }: RegistryDocument, id: GenerationId) =>
  void (await update([{ $unset: `generations.${generationName(id)}` }]));

const pathOf = (what: string): string => {
  if (!/^[\w -]+$/.test(what)) throw new Error(`${what} cannot be the name of a lease.`);
  return `leases.${what}`;
};

/** Takes a lease that is free, expired or the holder's own; leaves it as it is otherwise. */
const taken = (what: string, holder: string, note: string): MongoDocument => {
  const path = `$${pathOf(what)}`;
  const until = { $add: ['$$NOW', LEASE_MS] };
  const isFree = {
    $or: [
      { $eq: [{ $type: path }, 'missing'] },
      { $eq: [`${path}.holder`, literal(holder)] },
      { $lte: [`${path}.until`, '$$NOW'] },
      { $gt: [`${path}.until`, until] },
    ],
  };
  return { $cond: [isFree, { holder: literal(holder), until, note: literal(note) }, path] };
};

const leasesOn = ({ update }: RegistryDocument) => ({
  leaseMs: LEASE_MS,
  lease: async (names: readonly string[], holder: string, note = '') => {
    const set = Object.fromEntries(names.map((what) => [pathOf(what), taken(what, holder, note)]));
    const { leases } = await update([{ $set: set }]);
    return new Set(names.filter((what) => leases?.[what]?.holder === holder));
  },
  release: async (names: readonly string[], holder: string) => {
    const kept = (what: string) => ({
      $cond: [{ $eq: [`$${pathOf(what)}.holder`, literal(holder)] }, '$$REMOVE', `$${pathOf(what)}`],
    });
    await update([{ $set: Object.fromEntries(names.map((what) => [pathOf(what), kept(what)])) }]);
  },
});

export const registryOf = (document: RegistryDocument) =>
  ({
    ...leasesOn(document),
    state: async () => stateOf(await document.read()),
    makeLive: async (id, expected) => {
      let isLive = false;
      await document.change((now) => {
        const row = rowOf(now, id);
        const live = now.live?.[versionName(id)];
        isLive = row !== undefined && row.damage === undefined && live === expected;
        if (!isLive || live === id.generation) return undefined;
        const left = generationName({ ...id, generation: live ?? '' });
        return [
          {
            $set: {
              [`live.${versionName(id)}`]: literal(id.generation),
              ...(live === undefined ? {} : { [`generations.${left}.left_at`]: '$$NOW' }),
            },
          },
          { $unset: `generations.${generationName(id)}.left_at` },
        ];
      });
      return isLive;
    },
    requestRetry: async (tenantId) => {
      const count = { $add: [{ $ifNull: ['$retries.count', 0] }, 1] };
      const retries = { count, ...(tenantId === undefined ? {} : { tenant_id: literal(tenantId) }) };
      await document.update([{ $unset: 'retries.tenant_id' }, { $set: { retries } }]);
    },
  }) satisfies Omit<Registry, 'remove'>;
