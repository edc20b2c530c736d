import * as fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import { countLogs, findLogs, isNumbered, type LogFilter, type LogPage } from '../../projections/log-pages';
import { findLog, listEntityTypes, logs, type LogRow } from '../../projections/logs';
import type { Reader } from '../../projections/projector';
import type { StreamKind } from '../../src/domain/events';
import type { LoggedEvent } from '../../src/event-log/event-log';
import { runs, seed, seeded } from '../support/property';
import { sampleOf } from '../support/samples';
import { OTHER_TENANT, TENANT, USER } from './given';
import { batchSizes, clockSteps, iso, loggedOf, positionOf, projected, type HistoryEvent } from './history';

const START = Date.UTC(2026, 4, 31, 23, 30);

/** What a row must contain, derived without the code that writes it. */
interface NaiveRow {
  readonly id: string;
  readonly position: string;
  readonly entity_type: string;
  readonly entity_id: string;
  readonly actor_id?: string;
  readonly trace_id?: string;
  readonly operation: string;
  readonly source: string;
  readonly created_at: string;
}

const entityOf = ({ type, data, stream }: LoggedEvent): { entity_type: string; entity_id: string } => {
  const fields = data as Record<string, string>;
  if (type === 'ActivityReported')
    return { entity_type: fields['entityType']!.toLowerCase(), entity_id: fields['entityId']! };
  if (type.startsWith('Tenant')) return { entity_type: 'tenant', entity_id: stream.replace('tenant-', '') };
  if (type === 'KeyUsed') return { entity_type: 'key', entity_id: fields['keyId']! };
  return {
    entity_type: type.replace(/(Created|Read|Used|Updated|Deleted)$/, '').toLowerCase(),
    entity_id: fields['entityId']!,
  };
};

const words: Readonly<Record<string, string>> = { Created: 'create', Used: 'use', Deleted: 'delete' };
const operationOf = ({ type }: LoggedEvent): string => {
  if (type === 'ActivityReported') return 'sent';
  if (type === 'KeyUsed') return 'deny';
  const word = /(Created|Read|Used|Updated|Deleted)$/.exec(type)![0];
  return words[word] ?? word.toLowerCase().replace('updated', 'update');
};

/** Of an event that is set aside nothing is known but that. */
const contentOf = (event: LoggedEvent, isAside: boolean) => {
  if (isAside) return { entity_type: 'event', entity_id: event.id, operation: 'set_aside' };
  const { actor, traceId } = event.metadata as { actor?: { id: string }; traceId?: string };
  return {
    ...entityOf(event),
    ...(actor === undefined ? {} : { actor_id: actor.id }),
    ...(traceId === undefined ? {} : { trace_id: traceId }),
    operation: operationOf(event),
  };
};

/** The rows of a tenant, oldest first: first copies only, with a clock that never runs backwards. */
const naiveRows = ({ events, setAside }: Happened, tenantId: string): readonly NaiveRow[] => {
  const rows: NaiveRow[] = [];
  const aside = new Set(setAside.filter(({ stream }) => stream.endsWith(tenantId)).map(({ id }) => id));
  for (const event of events) {
    if (!event.stream.endsWith(tenantId) || rows.some((row) => row.id === event.id)) continue;
    const times = [event.recordedAt, ...rows.map((row) => row.created_at)];
    const created_at = times.reduce((a, b) => (a > b ? a : b));
    const reported = event.type === 'KeyUsed' ? 'access' : 'fact';
    rows.push({
      id: event.id,
      position: event.position,
      ...contentOf(event, aside.has(event.id)),
      source: event.stream.startsWith('tenant-') ? 'decision' : reported,
      created_at,
    });
  }
  return rows;
};

/** How many of the rows up to this one have the same values in these fields. Undefined: it has none there. */
const numberAmong = (rows: readonly NaiveRow[], at: number, ...fields: readonly (keyof NaiveRow)[]) => {
  if (fields.some((field) => rows[at]![field] === undefined)) return undefined;
  return rows.slice(0, at + 1).filter((row) => fields.every((field) => row[field] === rows[at]![field]))
    .length;
};

const naiveFilter = (rows: readonly NaiveRow[], filter: LogFilter): readonly NaiveRow[] =>
  rows.filter(
    (row) =>
      (filter.entity_type === undefined || row.entity_type === filter.entity_type) &&
      (filter.entity_id === undefined || row.entity_id === filter.entity_id) &&
      (filter.actor_id === undefined || row.actor_id === filter.actor_id) &&
      (filter.operation === undefined || row.operation === filter.operation) &&
      (filter.trace_id === undefined || row.trace_id === filter.trace_id) &&
      (filter.source === undefined || row.source === filter.source) &&
      (filter.start_date === undefined || row.created_at >= filter.start_date) &&
      (filter.end_date === undefined || row.created_at < filter.end_date),
  );

const idsOf = (rows: readonly { readonly id: string }[]) => rows.map((row) => row.id);
const shown = ({ rows, total, last }: LogPage) => ({ ids: idsOf(rows), total, more: last !== undefined });

/** All pages of both walks, the later ones perhaps of a log that has grown. Terminates only if the walk does. */
const pageWalk = async (first: Reader, filter: LogFilter, size: number, later = first) => {
  const seen: string[] = [];
  for (let page = 1; ; page += 1) {
    const found = await findLogs(page === 1 ? first : later, TENANT, { filter, page, size });
    if (found.rows.length === 0) return seen;
    seen.push(...idsOf(found.rows));
  }
};
const cursorWalk = async (first: Reader, filter: LogFilter, size: number, later = first) => {
  const seen: string[] = [];
  for (let olderThan: LogRow | undefined; ;) {
    const reader = olderThan === undefined ? first : later;
    const found: LogPage = await findLogs(reader, TENANT, { filter, page: 1, size, olderThan });
    seen.push(...idsOf(found.rows));
    if (found.last === undefined) return seen;
    olderThan = found.last;
  }
};

const ENTITIES = ['a', 'b', 'token'];
const TYPES = ['tenant', 'token', 'card', 'proxy', 'invoice', 'key', 'event', 'never'];
/** The filters that have totals by themselves, besides the type and id of an entity together. */
const ALONE: readonly (keyof LogFilter)[] = [
  'entity_type',
  'entity_id',
  'actor_id',
  'operation',
  'trace_id',
  'source',
];

const settings = { fingerprintTokens: false, deduplicateTokens: false };
const dataOf = (type: string, entityId: string): Readonly<Record<string, unknown>> => {
  if (type === 'TenantUpdated') return { name: 'A', settings };
  if (type === 'ActivityReported') return { entityType: 'Invoice', operation: 'Sent', entityId };
  if (type === 'KeyUsed') return sampleOf('KeyUsed').data;
  return { entityId };
};

interface Act {
  readonly type: string;
  readonly entityId: string;
  readonly step: number;
  readonly other: boolean;
  readonly actor: string | undefined;
  readonly traceId: string | undefined;
  /** Which earlier event it is a copy of, if any. */
  readonly copyOf: number | undefined;
  readonly isAside: boolean;
}

/** Omitted half of the time. */
const perhaps = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { freq: 2, nil: undefined });

const seldom = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });

/** An event of a type that is unknown must be set aside. */
const BAD = 'Unreadable';

const act: fc.Arbitrary<Act> = fc.record({
  type: fc.constantFrom(
    'TenantUpdated',
    'TokenCreated',
    'TokenRead',
    'CardUsed',
    'ProxyDeleted',
    'ActivityReported',
    'KeyUsed',
    BAD,
  ),
  entityId: fc.constantFrom(...ENTITIES),
  step: clockSteps,
  other: fc.nat(3).map((n) => n === 0),
  actor: fc.constantFrom(undefined, USER, OTHER_TENANT),
  traceId: fc.constantFrom(undefined, 'trace-1', 'trace-2'),
  copyOf: seldom(fc.nat(50)),
  isAside: fc.nat(9).map((n) => n === 0),
});

interface Happened {
  readonly events: readonly LoggedEvent[];
  readonly setAside: readonly LoggedEvent[];
}

/** Ids follow from the index in the history, so that a run can be repeated exactly. */
const idOf = (index: number): string => `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`;

const happened = (acts: readonly Act[]): Happened => {
  let now = START;
  const recorded: HistoryEvent[] = [];
  for (const [index, { type, entityId, step, other, copyOf, actor, traceId }] of acts.entries()) {
    now += step;
    const earlier = copyOf === undefined ? undefined : recorded[copyOf % Math.max(1, recorded.length)];
    const tenantId = other ? OTHER_TENANT : TENANT;
    const metadata = {
      ...(actor === undefined ? {} : { actor: { type: 'user', id: actor } }),
      ...(traceId === undefined ? {} : { traceId }),
    };
    const data = dataOf(type, entityId);
    const kind = type === BAD && entityId === 'a' ? ({ kind: 'tenant' } as const) : {};
    const fresh = { tenantId, type, data, metadata, recordedMs: now, id: idOf(index), ...kind };
    recorded.push(earlier === undefined ? fresh : { ...earlier, recordedMs: now });
  }
  const events = loggedOf(recorded);
  return { events, setAside: events.filter(({ type }, i) => type === BAD || acts[i]!.isAside) };
};

/** Moments in and around the history, some of them exactly those of rows. */
const momentAmong = (rows: readonly NaiveRow[], choice: number | undefined): string | undefined => {
  if (choice === undefined) return undefined;
  const moments = [
    iso(START - 7_200_000),
    iso(START + 7_200_000),
    ...rows.flatMap(({ created_at }) => [created_at, iso(Date.parse(created_at) + 1)]),
  ];
  return moments[choice % moments.length];
};

const question = fc.record({
  entity_type: perhaps(fc.constantFrom(...TYPES)),
  entity_id: perhaps(fc.constantFrom(...ENTITIES, TENANT, idOf(0), 'never')),
  start_date: perhaps(fc.nat(60)),
  end_date: perhaps(fc.nat(60)),
  actor_id: seldom(fc.constantFrom(USER, OTHER_TENANT, TENANT)),
  operation: seldom(fc.constantFrom('create', 'read', 'update', 'deny', 'set_aside', 'never')),
  trace_id: seldom(fc.constantFrom('trace-1', 'trace-2', 'never')),
  source: seldom(fc.constantFrom('decision', 'access', 'fact')),
  /** Only this filter counts, and the dates. */
  alone: fc.option(fc.constantFrom(...ALONE), { nil: undefined }),
  page: fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 1, max: 4 }) },
    { weight: 1, arbitrary: fc.constant(Number.MAX_SAFE_INTEGER) },
  ),
  size: fc.integer({ min: 1, max: 9 }),
  cursor: perhaps(fc.nat(45)),
});

type Question = typeof question extends fc.Arbitrary<infer Q> ? Q : never;

const filterOf = ({ alone, ...asked }: Question, rows: readonly NaiveRow[]): LogFilter => {
  const start_date = momentAmong(rows, asked.start_date);
  const end_date = momentAmong(rows, asked.end_date);
  const given = (alone === undefined ? ALONE : [alone]).filter((name) => asked[name] !== undefined);
  return {
    ...Object.fromEntries(given.map((name) => [name, asked[name]])),
    ...(start_date === undefined ? {} : { start_date }),
    ...(end_date === undefined ? {} : { end_date }),
  };
};

/** Each alone, and the type and id of an entity, besides the dates. */
const hasTotals = (filter: LogFilter): boolean => {
  const given = ALONE.filter((name) => filter[name] !== undefined);
  return given.length < 2 || given.join() === 'entity_type,entity_id';
};

describe('the logs of any history', () => {
  const histories = fc.array(act, { maxLength: 40, size: 'max' });

  it(seeded('are numbered, dated and typed as they happened, in batches of any size'), async () => {
    await fc.assert(
      fc.asyncProperty(histories, batchSizes, async (acts, sizes) => {
        const history = happened(acts);
        const reader = await projected(logs, history.events, { sizes, setAside: history.setAside });
        for (const tenantId of [TENANT, OTHER_TENANT]) {
          const naive = naiveRows(history, tenantId);
          const rows = (await reader.find(tenantId, 'log_rows', {
            index: 'by_number',
            limit: 1_000,
          })) as unknown as LogRow[];
          expect(rows).toEqual(
            naive.map((row, i) => ({
              ...row,
              number: i + 1,
              type_number: numberAmong(naive, i, 'entity_type'),
              entity_number: numberAmong(naive, i, 'entity_id'),
              typed_id_number: numberAmong(naive, i, 'entity_id', 'entity_type'),
              actor_number: numberAmong(naive, i, 'actor_id'),
              operation_number: numberAmong(naive, i, 'operation'),
              trace_number: numberAmong(naive, i, 'trace_id'),
              source_number: numberAmong(naive, i, 'source'),
              ...(row.actor_id === undefined ? {} : { actor_type: 'user' }),
              message: expect.stringMatching(/^.{5}/),
              evidence: expect.any(String),
            })),
          );
          const values = (await listEntityTypes(reader, tenantId)).map((type) => type.value);
          const known = ['application', 'bank', 'card', 'proxy', 'reactor', 'tenant', 'token'];
          expect(values).toEqual([...new Set([...known, ...naive.map((row) => row.entity_type)])].toSorted());
        }
      }),
      { seed, numRuns: runs(60) },
    );
  });

  it(seeded('answer every query like a filter of a plain array'), async () => {
    await fc.assert(
      fc.asyncProperty(
        histories,
        batchSizes,
        fc.array(question, { minLength: 1, maxLength: 30, size: 'max' }),
        async (acts, sizes, questions) => {
          const history = happened(acts);
          const reader = await projected(logs, history.events, { sizes, setAside: history.setAside });
          const all = naiveRows(history, TENANT);
          for (const asked of questions) {
            const filter = filterOf(asked, all);
            const { size } = asked;
            expect([filter, isNumbered(filter)]).toEqual([filter, hasTotals(filter)]);
            const page = isNumbered(filter) ? asked.page : 1;
            const matching = naiveFilter(all, filter).toReversed();
            // Any row of the tenant: a cursor goes on from there also with other filters.
            const seen = asked.cursor === undefined ? undefined : all[asked.cursor % all.length];
            const left = matching.filter((row) => seen === undefined || row.position < seen.position);
            const olderThan = seen === undefined ? undefined : await findLog(reader, TENANT, seen.id);
            const from = (page - 1) * size;
            const found = await findLogs(reader, TENANT, { filter, page, size, olderThan });
            expect({ filter, olderThan, page, size, ...shown(found) }).toEqual({
              filter,
              olderThan,
              page,
              size,
              ids: idsOf(left.slice(from, from + size)),
              total: isNumbered(filter) ? matching.length : undefined,
              // Where rows are looked at, it is unknown whether another one matches.
              more: isNumbered(filter)
                ? from < left.length && left.length > from + size
                : expect.any(Boolean),
            });
            if (left.length > size && page === 1) expect(found.last).toBeDefined();
          }
        },
      ),
      { seed, numRuns: runs(60) },
    );
  });

  it(seeded('can be walked completely by page and by cursor, and counted between any moments'), async () => {
    await fc.assert(
      fc.asyncProperty(
        histories,
        batchSizes,
        fc.array(question, { minLength: 1, maxLength: 6 }),
        fc.array(fc.nat(60)),
        async (acts, sizes, questions, choices) => {
          const history = happened(acts);
          const reader = await projected(logs, history.events, { sizes, setAside: history.setAside });
          const all = naiveRows(history, TENANT);
          const begun = { ...history, events: history.events.slice(0, acts.length / 2) };
          const earlier = await projected(logs, begun.events, { sizes, setAside: history.setAside });
          const moments = choices.map((choice) => momentAmong(all, choice)!).toSorted();
          for (const asked of questions) {
            const filter = filterOf(asked, all);
            const newestFirst = idsOf(naiveFilter(all, filter)).toReversed();
            expect(await cursorWalk(reader, filter, asked.size)).toEqual(newestFirst);
            const first = idsOf(naiveFilter(naiveRows(begun, TENANT), filter)).toReversed();
            expect(await cursorWalk(earlier, filter, asked.size, reader)).toEqual(first);
            if (!isNumbered(filter)) continue;
            expect(await pageWalk(reader, filter, asked.size)).toEqual(newestFirst);
            const seen = await pageWalk(earlier, filter, asked.size, reader);
            expect([...new Set(seen)].filter((id) => first.includes(id))).toEqual(first);
            expect(await countLogs(reader, TENANT, filter, moments)).toEqual(
              moments
                .slice(1)
                .map(
                  (end_date, i) => naiveFilter(all, { ...filter, start_date: moments[i], end_date }).length,
                ),
            );
          }
        },
      ),
      { seed, numRuns: runs(40) },
    );
  });
});

describe('a row of the log', () => {
  const recorded = (type: string, more: Partial<HistoryEvent> = {}): HistoryEvent => ({
    tenantId: TENANT,
    type,
    data: dataOf(type, 'a'),
    recordedMs: START,
    ...more,
  });
  const rowsOf = async (reader: Reader): Promise<readonly LogRow[]> =>
    (await findLogs(reader, TENANT, { filter: {}, page: 1, size: 100 })).rows;

  it('has its number, position, wording, source and actor, and the time that a fact names', async () => {
    const actor = { type: 'application', id: USER, name: 'Shop' };
    const data = { entityId: 'a', occurredAt: '2026-05-31T12:00:00.5+02:00' };
    const metadata = { version: 1, actor, traceId: 'trace-1' };
    const events = loggedOf([recorded('CardUsed', { data, metadata })]);
    expect(await rowsOf(await projected(logs, events))).toEqual([
      {
        id: events[0]!.id,
        number: 1,
        type_number: 1,
        entity_number: 1,
        typed_id_number: 1,
        actor_number: 1,
        operation_number: 1,
        trace_number: 1,
        source_number: 1,
        source: 'fact',
        position: events[0]!.position,
        entity_type: 'card',
        entity_id: 'a',
        operation: 'use',
        message: 'Card used',
        evidence: expect.any(String),
        actor_id: USER,
        actor_type: 'application',
        actor_name: 'Shop',
        trace_id: 'trace-1',
        occurred_at: '2026-05-31T10:00:00.500Z',
        created_at: iso(START),
      },
    ]);
  });

  it('omits a trace id that is too long to be queried', async () => {
    const traced = (length: number) => recorded('CardUsed', { metadata: { traceId: 'x'.repeat(length) } });
    const rows = await rowsOf(await projected(logs, loggedOf([traced(128), traced(129)])));
    expect(rows.map((row) => row.trace_id)).toEqual([undefined, 'x'.repeat(128)]);
  });

  it('is dated by when it was recorded, not by when it happened or was said to have happened', async () => {
    const data = { entityId: 'a', occurredAt: '2020-01-01T00:00:00Z' };
    const event = recorded('TokenRead', { data, metadata: { at: '2021-01-01T00:00:00Z' } });
    const [row] = await rowsOf(await projected(logs, loggedOf([event])));
    expect(row!.created_at).toBe(iso(START));
  });

  it('has at most 200 characters of a name that was appended directly', async () => {
    const named = (name: string) =>
      recorded('CardUsed', { metadata: { actor: { type: 'user', id: USER, name } } });
    const rows = await rowsOf(await projected(logs, loggedOf([named('x'.repeat(999))])));
    expect(rows[0]!.actor_name).toBe('x'.repeat(200));
  });

  it('is the first copy: later events with the same id get none, in the same batch and in a later one', async () => {
    const id = randomUUID();
    const copies = [
      recorded('TokenCreated', { id }),
      recorded('TokenCreated', { id, recordedMs: START + 5 }),
      recorded('CardRead', { recordedMs: START + 6 }),
      recorded('TokenCreated', { id, recordedMs: START + 7 }),
      recorded('ProxyRead', { id, recordedMs: START + 8 }),
      recorded('CardRead', { recordedMs: START + 1 }),
    ];
    const events = loggedOf(copies);
    const expected = [events[5]!, events[2]!, events[0]!].map((event) => event.id);
    for (const sizes of [[6], [1], [3, 1, 2]]) {
      const rows = await rowsOf(await projected(logs, events, { sizes }));
      expect(idsOf(rows)).toEqual(expected);
      expect(rows.map((row) => row.number)).toEqual([3, 2, 1]);
      expect(rows.map((row) => row.created_at)).toEqual([START + 6, START + 6, START].map(iso));
    }
  });

  it.each<[string, StreamKind, string]>([
    ['TenantUpdated', 'tenant', 'decision'],
    ['NeverHeardOf', 'tenant', 'decision'],
    ['KeyUsed', 'activity', 'access'],
    ['TokenRead', 'activity', 'fact'],
    ['NeverHeardOf', 'activity', 'fact'],
  ])('says that a %s of the stream %s was set aside, whatever is in it', async (type, kind, source) => {
    const data = { entityId: '\ud800', tenantId: OTHER_TENANT };
    const metadata = { actor: { type: 'user', id: USER }, traceId: 'trace-1' };
    const events = loggedOf([
      recorded('CardRead', { recordedMs: START + 5 }),
      recorded(type, { kind, data, metadata }),
      recorded('CardRead'),
    ]);
    const [, aside] = events;
    const reader = await projected(logs, events, { setAside: [aside!] });
    const [last, row] = await rowsOf(reader);
    expect(row).toEqual({
      id: aside!.id,
      number: 2,
      type_number: 1,
      entity_number: 1,
      typed_id_number: 1,
      operation_number: 1,
      source_number: source === 'fact' ? 2 : 1,
      position: positionOf(1),
      entity_type: 'event',
      entity_id: aside!.id,
      operation: 'set_aside',
      message: 'Event set aside',
      evidence: expect.any(String),
      source,
      created_at: iso(START + 5),
    });
    expect(last).toMatchObject({ number: 3, type_number: 2 });
    expect((await findLog(reader, TENANT, aside!.id))?.position).toBe(positionOf(1));
    expect((await listEntityTypes(reader, TENANT)).map(({ value }) => value)).toContain('event');
  });

  it('of one tenant is separate from that of another with the same event id and entity', async () => {
    const id = randomUUID();
    const events = loggedOf([
      recorded('TokenRead', { id }),
      recorded('TokenRead', { id, tenantId: OTHER_TENANT }),
    ]);
    const reader = await projected(logs, events);
    for (const [tenantId, position] of [
      [TENANT, positionOf(0)],
      [OTHER_TENANT, positionOf(1)],
    ] as const)
      for (const filter of [{}, { entity_id: 'a' }, { entity_type: 'token' }]) {
        const { rows, total } = await findLogs(reader, tenantId, { filter, page: 1, size: 9 });
        expect([total, rows.map((row) => row.position)]).toEqual([1, [position]]);
      }
  });
});
