import { knownLiveSet, type TenantReader } from '../../src/projecting/live-set';
import type { ParkedTenant, ReadModels, ReadModelSet } from '../../src/read-models/read-models';
import { sqliteReadModels } from '../../src/read-models/sqlite/sqlite-read-models';
import { closeAfterwards } from '../support/closing';
import { freshFolder } from '../support/folders';
import { deferred } from '../support/waiting';

const HEAD = { position: '1', eventId: 'e' };
const [TENANT, PARKED] = ['a tenant', 'a parked tenant'];
const MARK: ParkedTenant = {
  tenant_id: PARKED,
  event_id: 'bad',
  event_type: 'TenantUpdated',
  position: '2',
  recorded_at: '2091-01-01T00:00:00.000Z',
  cause: 'bad_event',
  reason: 'It cannot be read.',
  since: '2091-01-01T00:00:01.000Z',
  program: '1',
};

/** Shows a tenant under a name. */
const show = async (set: ReadModelSet, tenantId: string, name: string, parked?: ParkedTenant) => {
  const progress = { tenant: 0, activity: -1, position: HEAD.position, ...(parked && { parked }) };
  const key = { tenantId, collection: 'names', key: 'it' };
  const writes = [{ ...key, document: { name }, isNew: true }];
  const commit = { tenantId, writes, progress, head: HEAD };
  const advanced = await set.advance(new Map([[tenantId, undefined]]), async () => [commit], HEAD);
  expect(advanced).toEqual(new Map([[tenantId, 'done']]));
};

/** The live set shows a tenant as `former`. */
const opened = async () => {
  const collections = [{ name: 'names', indexes: {} }];
  const readModels = sqliteReadModels({ folder: freshFolder(), version: 'v', collections });
  closeAfterwards(() => readModels.close());
  const set = await readModels.create('log');
  await show(set, TENANT, 'former');
  await readModels.succeed(set, undefined);
  const log: string[] = [];
  let beforeLook = async (): Promise<unknown> => undefined;
  const watched: ReadModels = {
    ...readModels,
    live: async () => {
      log.push('look');
      await beforeLook();
      return readModels.live();
    },
  };
  const known = knownLiveSet(watched);
  /** The name of the tenant. */
  const nameOf = async (reader: TenantReader) => {
    log.push('query');
    return (await reader.get(TENANT, 'names', 'it'))?.['name'];
  };
  /** Another set, which shows the tenant as `latter`. */
  const switched = async () => {
    const next = await readModels.create('log');
    await show(next, TENANT, 'latter');
    expect(await readModels.succeed(next, set)).toBe(true);
  };
  const onLook = (before: () => Promise<unknown>): void => void (beforeLook = before);
  return { readModels, set, watched, known, log, nameOf, switched, onLook };
};

describe('a look at the live set', () => {
  it('is shared by requests of the same moment, and not by those that come later', async () => {
    const { readModels, set, watched, log } = await opened();
    const [seen, proceed] = [deferred(), deferred()];
    const { look } = knownLiveSet({
      ...watched,
      live: async () => {
        const live = await watched.live();
        seen.resolve();
        await proceed.promise;
        return live;
      },
    });
    const together = [look(), look()];
    await seen.promise;
    const next = await readModels.create('log');
    await readModels.succeed(next, set, { evenIfBehind: true });
    const later = [look(), look()];
    proceed.resolve();
    expect((await Promise.all(together)).map(({ set: { id } }) => id)).toEqual([set.id, set.id]);
    expect((await Promise.all(later)).map(({ set: { id } }) => id)).toEqual([next.id, next.id]);
    expect(log).toEqual(['look', 'look']);
  });

  it('finds none before one is built', async () => {
    const readModels = sqliteReadModels({ folder: freshFolder(), version: 'v', collections: [] });
    closeAfterwards(() => readModels.close());
    await readModels.create('log');
    const { look, query } = knownLiveSet(readModels);
    const refusal = { code: 'read_models_unavailable' };
    await expect(look()).rejects.toMatchObject(refusal);
    await expect(query(TENANT, async () => 1)).rejects.toMatchObject(refusal);
  });
});

describe('a query of the live set', () => {
  it('asks for control state and documents at once, and for the documents once', async () => {
    const { known, log, nameOf, onLook } = await opened();
    expect(await known.query(TENANT, nameOf)).toEqual({ value: 'former', parked: undefined });
    expect(log).toEqual(['look', 'query']); // It knew of no set.
    const [looking, reading] = [deferred(), deferred()];
    onLook(() => {
      looking.resolve();
      return reading.promise;
    });
    const { value } = await known.query(TENANT, async (reader) => {
      reading.resolve();
      await looking.promise;
      return nameOf(reader);
    });
    expect(value).toBe('former');
    expect(log.slice(2).toSorted()).toEqual(['look', 'query']);
  });

  it('is run again on the set that has taken its place', async () => {
    const { known, log, nameOf, switched } = await opened();
    await known.query(TENANT, nameOf);
    await switched();
    expect((await known.query(TENANT, nameOf)).value).toBe('latter');
    expect(log.filter((step) => step === 'query')).toHaveLength(3);
    expect((await known.query(TENANT, nameOf)).value).toBe('latter');
    expect(log.filter((step) => step === 'query')).toHaveLength(4);
  });

  it.each([
    ['fails', (): Promise<never> => Promise.reject(new Error('It is removed.'))],
    ['does not answer', () => new Promise<never>(() => undefined)],
  ])('does not depend on a former set that %s', async (_, onFormer) => {
    const { known, set, nameOf, switched } = await opened();
    await known.look();
    await switched();
    const query = (reader: TenantReader & { readonly id?: string }) =>
      reader.id === set.id ? onFormer() : nameOf(reader);
    expect((await known.query(TENANT, query)).value).toBe('latter');
  });

  it('rejects as the query does, or as the look if that fails', async () => {
    const { known, nameOf, onLook } = await opened();
    const refuse = () => Promise.reject(new Error('It is refused.'));
    for (let i = 0; i < 2; i += 1)
      await expect(known.query(TENANT, refuse)).rejects.toThrow('It is refused.');
    for (const query of [nameOf, refuse]) {
      onLook(() => Promise.reject(new Error('It is away.')));
      await expect(known.query(TENANT, query)).rejects.toThrow('It is away.');
    }
  });

  it('says whether the tenant is parked, and asks only if any is', async () => {
    const { known, set, nameOf } = await opened();
    const asked: (readonly string[])[] = [];
    const { progress } = set;
    const watched = { ...set, progress: (ids: readonly string[]) => (asked.push(ids), progress(ids)) };
    const live = async () => ({ set: watched, control: await set.control() });
    const { query } = knownLiveSet({ live } as ReadModels);
    expect(await query(TENANT, nameOf)).toEqual({ value: 'former', parked: undefined });
    expect(asked).toEqual([]);
    await show(set, PARKED, 'parked', MARK);
    expect(await query(TENANT, nameOf)).toEqual({ value: 'former', parked: undefined });
    expect(await query(PARKED, nameOf)).toEqual({ value: 'former', parked: MARK });
    expect(asked).toEqual([[TENANT], [PARKED]]);
    expect((await known.query(PARKED, nameOf)).parked).toEqual(MARK);
  });
});
