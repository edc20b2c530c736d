import { randomUUID } from 'node:crypto';
import { pause } from '../../src/async/clock';
import type { EventLog } from '../../src/event-log/event-log';
import { ingest, type Ingested } from '../../src/ingest/ingest';
import type { KnownLiveSet, TenantReader } from '../../src/projecting/live-set';
import type { ParkedTenant } from '../../src/read-models/read-models';
import type { Show } from '../../src/projecting/show-tenants';
import { eventsOf } from '../support/events';
import { aFact, countedUsage, manyFacts, textOf, type Fact } from '../support/facts';
import { freshFolder } from '../support/folders';
import { seed, seeded } from '../support/property';
import { readingsOf, type Readings } from '../support/readings';
import { deferred, until } from '../support/waiting';

interface Outcome extends Ingested {
  readonly errors: readonly (readonly [number, string])[];
}

interface IngestOptions {
  readonly dryRun?: boolean;
  /** The read models show none of the events. */
  readonly areBehind?: boolean;
  readonly areAway?: boolean;
  readonly isParked?: boolean;
  readonly log?: EventLog;
  readonly show?: Show;
}

const parked: ParkedTenant = {
  tenant_id: 't',
  event_id: 'e',
  event_type: 'TokenCreated',
  position: '1',
  recorded_at: '2026-01-05T09:00:00.000Z',
  cause: 'bad_event',
  reason: 'It is unreadable.',
  since: '2026-01-05T09:00:00.000Z',
  program: '1',
};

describe('ingest', () => {
  const folder = freshFolder();
  let here: Readings;
  let tenant = '';
  beforeAll(async () => {
    here = await readingsOf(folder);
    await here.app.catchUp((await here.app.log.head())?.position ?? '', 10_000);
  });
  beforeEach(async () => {
    tenant = await here.newTenant();
  });

  const take = async (
    input: AsyncIterable<string> | readonly (Fact | string)[],
    {
      dryRun = false,
      areBehind = false,
      areAway = false,
      isParked = false,
      log = here.app.log,
      show = here.app.show,
    }: IngestOptions = {},
  ): Promise<Outcome> => {
    const { ledger, streams, live } = here.app;
    const errors: (readonly [number, string])[] = [];
    const source = async function* () {
      if (Symbol.asyncIterator in input) yield* input;
      else yield textOf(input);
    };
    const known: Pick<KnownLiveSet, 'query'> = {
      query: async (tenantId, query) => {
        const progressIn = (set: TenantReader): TenantReader['progress'] => {
          if (areAway) throw new Error('They are away.');
          return areBehind ? async (tenantIds) => tenantIds.map(() => undefined) : set.progress;
        };
        const found = await live.query(tenantId, (set) => query({ ...set, progress: progressIn(set) }));
        return isParked ? { ...found, parked } : found;
      },
    };
    const dependencies = { log, ledger, streams, show, live: known };
    const {
      shown: isShown,
      failure,
      ...done
    } = await ingest(source() as AsyncIterable<string>, dependencies, {
      dryRun,
      onRefused: (line, reason) => errors.push([line, reason]),
      onProgress: () => undefined,
    });
    if (failure !== undefined) throw Object.assign(failure, { errors });
    expect(isShown).toBe(true);
    return { ...done, errors };
  };

  const reported = (tenantId = tenant) =>
    eventsOf(here.app.log.readStream(here.app.streams.activity(tenantId)));
  const rowIds = async (tenantId = tenant): Promise<readonly string[]> =>
    (await here.logs(tenantId)).filter((row) => row.entity_type !== 'tenant').map((row) => row.id);

  it('accepts valid lines, and reports the number and the reason of the others', async () => {
    const facts = [aFact(tenant), aFact(tenant), aFact(tenant)];
    const lines = [facts[0]!, '', 'nonsense', facts[1]!, '{}', '   ', { ...facts[1]!, type: 'X' }, facts[2]!];
    expect(await take(lines)).toEqual({
      accepted: 3,
      alreadyThere: 0,
      refused: 3,
      errors: [
        [3, 'it is not JSON'],
        [5, '"id" must be a UUID'],
        [7, '"type" is not a known fact: "X"'],
      ],
    });
    expect(await rowIds()).toEqual(facts.map(({ id }) => id).toReversed());
  });

  it('reports what it refused even if it fails', async () => {
    const taking = take(['nonsense', aFact(tenant)], { areAway: true });
    await expect(taking).rejects.toMatchObject({ errors: [[1, 'it is not JSON']] });
  });

  it('refuses unknown and deleted tenants, line by line, and no others', async () => {
    const [unknown, deleted] = [randomUUID(), await here.newTenant()];
    await here.deleteTenant(deleted);
    const lines = [aFact(unknown), aFact(tenant), aFact(deleted), aFact(unknown), aFact(tenant)];
    expect(await take(lines)).toEqual({
      accepted: 2,
      alreadyThere: 0,
      refused: 3,
      errors: [
        [1, `tenant ${unknown} is unknown`],
        [3, `tenant ${deleted} is deleted`],
        [4, `tenant ${unknown} is unknown`],
      ],
    });
    expect(await reported(unknown)).toEqual([]);
    expect(await reported(deleted)).toEqual([]);
    expect(await rowIds()).toHaveLength(2);
  });

  it('notices a tenant that another process creates or deletes while it reads', async () => {
    const elsewhere = await readingsOf(folder);
    const late = randomUUID();
    const facts = [aFact(late), aFact(tenant), aFact(late), aFact(tenant)];
    const source = async function* () {
      yield textOf(facts.slice(0, 2));
      await elsewhere.newTenant(late);
      await elsewhere.deleteTenant(tenant);
      yield textOf(facts.slice(2));
    };
    expect(await take(source())).toEqual({
      accepted: 2,
      alreadyThere: 0,
      refused: 2,
      errors: [
        [1, `tenant ${late} is unknown`],
        [4, `tenant ${tenant} is deleted`],
      ],
    });
  });

  it('does not delay a line until the next one arrives', async () => {
    const fact = aFact(tenant);
    let seen = false;
    const source = async function* () {
      yield textOf([fact]);
      await until(async () => (await rowIds()).includes(fact.id));
      seen = true;
      yield textOf([aFact(tenant)]);
    };
    expect(await take(source())).toMatchObject({ accepted: 2, refused: 0 });
    expect(seen).toBe(true);
  });

  it('accepts many lines that are longer as stored, in as many appends as needed', async () => {
    const numbers = Array.from({ length: 10_000 }, () => '1e15').join(',');
    const grow = (): string =>
      JSON.stringify(aFact(tenant, { data: { entityId: 'a', n: 0 } })).replace('"n":0', `"n":[${numbers}]`);
    expect(await take(Array.from({ length: 30 }, grow))).toMatchObject({ accepted: 30, refused: 0 });
  });

  it(seeded('counts an id once per tenant, however often it is sent'), async () => {
    const other = await here.newTenant();
    const facts = manyFacts([tenant], 300, seed);
    const shared = facts.map((fact) => ({ ...fact, tenant_id: other }));
    await take([...facts, ...shared, ...facts.toReversed()]);
    expect(await take([...shared.slice(100), ...facts.slice(50)], { areBehind: true })).toMatchObject({
      accepted: 0,
      alreadyThere: 450,
    });
    for (const one of [tenant, other]) {
      expect((await rowIds(one)).toSorted()).toEqual(facts.map(({ id }) => id).toSorted());
      expect(await here.usage(one)).toEqual(countedUsage([...facts, ...shared], one));
    }
    expect(await reported()).toHaveLength(300);
  });

  it('appends without waiting for the read models, up to a bound', async () => {
    const shown = deferred();
    const asked: string[] = [];
    const show: Show = async (_, position) => {
      asked.push(position);
      await shown.promise;
      return true;
    };
    let appended = 0;
    const append: EventLog['append'] = (...given) => {
      appended += given[1].length;
      return here.app.log.append(...given);
    };
    const taking = take(manyFacts([tenant], 22_000, seed), { log: { ...here.app.log, append }, show });
    await until(() => appended > 20_000);
    await pause(100);
    expect(appended).toBeLessThanOrEqual(20_500);
    expect(asked).toHaveLength(41);
    shown.resolve();
    expect(await taking).toMatchObject({ accepted: 22_000 });
    expect(await reported()).toHaveLength(22_000);
  });

  it('asks again for a tenant that was not shown in time, unless it is parked', async () => {
    let refused = 3;
    const show: Show = async (...asked) => refused-- <= 0 && here.app.show(...asked);
    expect(await take([aFact(tenant)], { show })).toMatchObject({ accepted: 1 });
    expect(refused).toBe(-1);
    const never: Show = async () => false;
    expect(await take([aFact(tenant)], { show: never, isParked: true })).toMatchObject({ accepted: 1 });
  });

  it('goes on while the read models are away, and asks again for what they did not show', async () => {
    let failures = 3;
    const show: Show = async (...asked) => {
      if (failures-- > 0) throw new Error('They are away.');
      return here.app.show(...asked);
    };
    expect(await take(manyFacts([tenant], 600, seed), { show })).toMatchObject({ accepted: 600 });
    expect(failures).toBeLessThan(0);
  });

  it('counts facts that already exist separately, and does not append them again', async () => {
    const other = await here.newTenant();
    const facts = manyFacts([tenant], 20, seed);
    expect(await take([...facts, facts[3]!])).toMatchObject({ accepted: 20, alreadyThere: 1, refused: 0 });
    const more = [aFact(tenant), ...facts, { ...facts[0]!, tenant_id: other }];
    expect(await take(more, { dryRun: true })).toMatchObject({ accepted: 2, alreadyThere: 20 });
    expect(await take(more)).toMatchObject({ accepted: 2, alreadyThere: 20, refused: 0 });
    expect(await reported()).toHaveLength(21);
    expect(await reported(other)).toHaveLength(1);
  });
});
