import * as fc from 'fast-check';
import { logs } from '../../projections/logs';
import { projections } from '../../projections/projections';
import type { Reader } from '../../projections/projector';
import { reportUsage, usage, usageByMonth } from '../../projections/usage';
import type { LoggedEvent } from '../../src/event-log/event-log';
import type { TenantCommit } from '../../src/read-models/read-models';
import { runs, seed, seeded } from '../support/property';
import { OTHER_TENANT, TENANT, USER } from './given';
import { batchSizes, clockSteps, iso, loggedOf, projected, type HistoryEvent } from './history';

/** Half an hour before a month ends: jumps of an hour cross the boundary. */
const START = Date.UTC(2026, 4, 31, 23, 30);
const MONTHS = ['2026-04', '2026-05', '2026-06', '2026-07', '2027-05'];
/** All from the first to the last of these. */
const ALL_MONTHS = 14;

const TOKEN_FACT = /^(Token|Card|Bank)(Created|Read|Used|Updated|Deleted)$/;

interface Fact {
  readonly token: string;
  readonly type: string;
  readonly operation: string;
  readonly ms: number;
}

/** The facts about tokens of a tenant: first copies, with their own times as numbers. */
const factsOf = (events: readonly LoggedEvent[], tenantId: string): readonly Fact[] => {
  const seen = new Set<string>();
  return events.flatMap(({ id, type, data, metadata, stream, recordedAt }) => {
    const [, entity = '', operation = ''] = TOKEN_FACT.exec(type) ?? [];
    if (stream !== `activity-${tenantId}` || seen.has(id)) return [];
    seen.add(id);
    if (entity === '') return [];
    const { entityId, occurredAt } = data as { entityId: string; occurredAt?: string };
    const time = occurredAt ?? (metadata as { at?: string }).at ?? recordedAt;
    return [
      { token: `${entity} ${entityId}`, type: entity.toLowerCase(), operation, ms: new Date(time).getTime() },
    ];
  });
};

const inMonth = (ms: number, month: string): boolean => {
  const date = new Date(ms);
  return `${date.getUTCFullYear()}-${String(date.getUTCMonth() + 1).padStart(2, '0')}` === month;
};

/** The report counted from scratch: no state, no order of arrival. */
const naiveReport = (events: readonly LoggedEvent[], tenantId: string, month: string) => {
  const facts = factsOf(events, tenantId);
  const lastOf = (token: string, operation: string): number =>
    Math.max(
      ...facts.filter((fact) => fact.token === token && fact.operation === operation).map((f) => f.ms),
    );
  const isAlive = (token: string): boolean => lastOf(token, 'Created') > lastOf(token, 'Deleted');
  const metrics = Object.fromEntries(
    [...new Set(facts.map((fact) => fact.type))].map((type) => {
      const own = facts.filter((fact) => fact.type === type);
      const created = own.filter((fact) => fact.operation === 'Created').map((fact) => fact.ms);
      const count = [...new Set(own.map((fact) => fact.token))].filter(isAlive).length;
      return [
        type,
        { count, ...(created.length === 0 ? {} : { last_created_at: iso(Math.max(...created)) }) },
      ];
    }),
  );
  const active = facts.filter(
    (fact) => ['Created', 'Read', 'Used'].includes(fact.operation) && inMonth(fact.ms, month),
  );
  return {
    token_report: {
      metrics_by_type: metrics,
      included_monthly_active_tokens: 0,
      monthly_active_tokens: new Set(active.map((fact) => fact.token)).size,
    },
  };
};

const reportFor = (reader: Reader, month: string, tenantId = TENANT) => reportUsage(reader, tenantId, month);

const entities = ['Token', 'Token', 'Card', 'Bank', 'Proxy', 'Reactor'];
const operations = ['Created', 'Read', 'Used', 'Updated', 'Deleted'];

interface Act {
  readonly entity: string;
  readonly operation: string;
  readonly entityId: string;
  readonly step: number;
  readonly other: boolean;
  /** The fact's own time, in minutes from the start, and the offset it is written in; undefined if it names none. */
  readonly occurred: { readonly minutes: number; readonly offset: string } | undefined;
  readonly at: number | undefined;
  readonly activity: boolean;
  readonly copyOf: number | undefined;
}

const act: fc.Arbitrary<Act> = fc.record({
  entity: fc.constantFrom(...entities),
  operation: fc.constantFrom(...operations),
  entityId: fc.constantFrom('a', 'b', 'c'),
  step: fc.oneof(
    { weight: 9, arbitrary: clockSteps },
    { weight: 1, arbitrary: fc.constant(30 * 86_400_000) },
  ),
  other: fc.boolean(),
  occurred: fc.option(
    fc.record({
      minutes: fc.oneof(fc.integer({ min: 28, max: 32 }), fc.integer({ min: -50_000, max: 50_000 })),
      offset: fc.constantFrom('Z', '+02:00', '-11:30', '+14:00'),
    }),
    { nil: undefined },
  ),
  at: fc.option(fc.integer({ min: -3, max: 3 }), { nil: undefined }),
  activity: fc.nat(9).map((n) => n === 0),
  copyOf: fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.nat(50) }),
});

const inOffset = (ms: number, offset: string): string => {
  const [, sign = '+', hours = '0', minutes = '0'] = /^([+-])(\d\d):(\d\d)$/.exec(offset) ?? [];
  const shift = Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes)) * 60_000;
  return iso(ms + shift).replace('Z', offset);
};

const idOf = (index: number): string => `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`;

const eventFor = (fact: Act, index: number, now: number): HistoryEvent => {
  const { entity, operation, entityId, occurred, at, activity } = fact;
  const occurredAt =
    occurred === undefined
      ? {}
      : { occurredAt: inOffset(START + occurred.minutes * 60_000, occurred.offset) };
  return {
    tenantId: fact.other ? OTHER_TENANT : TENANT,
    type: activity ? 'ActivityReported' : `${entity}${operation}`,
    data: activity
      ? { entityType: 'token', operation: 'created', entityId, ...occurredAt }
      : { entityId, ...occurredAt },
    metadata: at === undefined ? {} : { at: iso(now + at) },
    recordedMs: now,
    id: idOf(index),
  };
};

/** A copy is the same event, recorded (and reported as received) at a later time. */
const happened = (acts: readonly Act[]): readonly LoggedEvent[] => {
  let now = START;
  const recorded: HistoryEvent[] = [];
  for (const [index, one] of acts.entries()) {
    now += one.step;
    const fresh = eventFor(one, index, now);
    const earlier =
      one.copyOf === undefined ? undefined : recorded[one.copyOf % Math.max(1, recorded.length)];
    recorded.push(
      earlier === undefined ? fresh : { ...earlier, recordedMs: now, metadata: fresh.metadata ?? {} },
    );
  }
  return loggedOf(recorded);
};

describe('the usage after any history', () => {
  it(seeded('equals a count from scratch, in every month and for every tenant'), async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 40, size: 'max' }), batchSizes, async (acts, sizes) => {
        const events = happened(acts);
        const reader = await projected([usage, logs], events, { sizes });
        for (const tenantId of [TENANT, OTHER_TENANT]) {
          for (const month of MONTHS)
            expect({ month, ...(await reportFor(reader, month, tenantId)) }).toEqual({
              month,
              ...naiveReport(events, tenantId, month),
            });
          const listed = await usageByMonth(reader, tenantId, MONTHS.at(-1)!, ALL_MONTHS);
          expect(listed.map(({ month, monthly_active_tokens }) => [month, monthly_active_tokens])).toEqual(
            listed.map(({ month }) => [
              month,
              naiveReport(events, tenantId, month).token_report.monthly_active_tokens,
            ]),
          );
          expect([listed.length, listed[0]!.month]).toEqual([ALL_MONTHS, MONTHS[0]]);
        }
      }),
      { seed, numRuns: runs(120) },
    );
  });
});

describe('the usage', () => {
  const fact = (type: string, entityId: string, occurredAt?: string, more: Partial<HistoryEvent> = {}) => ({
    tenantId: TENANT,
    type,
    data: { entityId, ...(occurredAt === undefined ? {} : { occurredAt }) },
    recordedMs: START,
    ...more,
  });
  const may = (day: number, time = '12:00:00.000'): string =>
    `2026-05-${String(day).padStart(2, '0')}T${time}Z`;
  const after = async (...recorded: readonly HistoryEvent[]) =>
    (await reportFor(await projected([usage, logs], loggedOf(recorded), { sizes: [2] }), '2026-05'))
      .token_report;

  it.each<[string, readonly HistoryEvent[]]>([
    [
      'created and deleted at the same time is deleted',
      [fact('TokenCreated', 'a', may(1)), fact('TokenDeleted', 'a', may(1))],
    ],
    [
      'deleted and created at the same time is deleted',
      [fact('TokenDeleted', 'a', may(1)), fact('TokenCreated', 'a', may(1))],
    ],
    [
      'the same moment in two offsets is a tie',
      [fact('TokenCreated', 'a', '2026-05-01T14:00:00+02:00'), fact('TokenDeleted', 'a', may(1))],
    ],
  ])('%s', async (_, recorded) => {
    expect(await after(...recorded)).toEqual({
      metrics_by_type: { token: { count: 0, last_created_at: may(1) } },
      included_monthly_active_tokens: 0,
      monthly_active_tokens: 1,
    });
  });

  it.each(['TokenRead', 'TokenUsed', 'TokenUpdated'])(
    'is not written again by a %s of a token that is known in its month: the row is all',
    async (type) => {
      const first = [fact('TokenCreated', 'a', may(1)), fact('CardCreated', 'b', may(1))];
      const history = [...first, ...[2, 2, 3].map((day) => fact(type, 'a', may(day)))];
      const written: (readonly string[])[] = [];
      const onCommit = ({ writes }: TenantCommit): void => {
        written.push(writes.map(({ collection, isNew }) => `${collection} ${isNew}`));
      };
      for (const sizes of [[1], [2, 3]]) {
        written.length = 0;
        await projected(projections, loggedOf(history), { sizes, onCommit });
        const rows = sizes.length === 1 ? [1, 1, 1] : [3];
        expect(written.slice(-rows.length)).toEqual(
          rows.map((count) => Array.from({ length: count }, () => 'log_rows true')),
        );
      }
    },
  );

  describe('of a month', () => {
    const settings = { fingerprintTokens: false, deduplicateTokens: false };
    /** A plan that was decided at a time, by whatever clock. */
    const plan = (at: string, includedMonthlyActiveTokens: number, isFirst = false): HistoryEvent => ({
      tenantId: TENANT,
      type: isFirst ? 'TenantCreated' : 'TenantPlanChanged',
      data: isFirst
        ? { name: 'A', ownerId: USER, settings, includedMonthlyActiveTokens }
        : { includedMonthlyActiveTokens },
      recordedMs: START,
      metadata: { at },
    });
    const created = plan('2026-03-10T00:00:00Z', 5, true);
    /** From February to July. */
    it.each<[string, readonly HistoryEvent[], readonly number[]]>([
      ['none before there is a plan', [created], [0, 5, 5, 5, 5, 5]],
      ['it is that of its end', [created, plan('2026-04-30T23:59:59.999Z', 7)], [0, 5, 7, 7, 7, 7]],
      ['it is that of its end in UTC', [created, plan('2026-05-01T00:59:59+01:00', 7)], [0, 5, 7, 7, 7, 7]],
      ['it is not that of a moment later', [created, plan('2026-05-01T00:00:00Z', 7)], [0, 5, 5, 7, 7, 7]],
      [
        'it is the last of several',
        [created, plan('2026-04-01T00:00:00Z', 7), plan('2026-04-02T00:00:00Z', 0)],
        [0, 5, 0, 0, 0, 0],
      ],
      [
        'what was decided last holds, although a clock was ahead before',
        [created, plan('2026-07-01T00:00:00Z', 7), plan('2026-05-01T00:00:00Z', 9)],
        [0, 5, 5, 9, 9, 9],
      ],
    ])('has what the plan included: %s', async (_, history, included) => {
      const reader = await projected([usage, logs], loggedOf(history), { sizes: [1] });
      const months = await usageByMonth(reader, TENANT, '2026-07', 6);
      expect(months.map((month) => month.included_monthly_active_tokens)).toEqual(included);
      expect(await usageByMonth(reader, TENANT, '2026-04')).toEqual([months[2]]);
    });

    it('keeps one plan of a month, however often it changes', async () => {
      const changes = Array.from({ length: 9 }, (_, n) => plan(`2026-04-0${n + 1}T00:00:00Z`, n));
      const reader = await projected([usage, logs], loggedOf([created, ...changes]));
      expect(await reader.get(TENANT, 'usage_plan', 'plan')).toEqual({
        changes: [
          { month: '2026-03', included_monthly_active_tokens: 5 },
          { month: '2026-04', included_monthly_active_tokens: 8 },
        ],
      });
    });

    it('goes back over the turn of years, and no further than there are years', async () => {
      const reader = await projected(
        [usage, logs],
        loggedOf([fact('CardRead', 'a', '2024-12-31T23:00:00Z')]),
      );
      const months = async (last: string, count: number) =>
        (await usageByMonth(reader, TENANT, last, count)).map(({ month }) => month);
      expect(await months('2025-02', 4)).toEqual(['2024-11', '2024-12', '2025-01', '2025-02']);
      expect(await months('0000-02', 9)).toEqual(['0000-01', '0000-02']);
      expect(
        (await usageByMonth(reader, TENANT, '2025-02', 4)).map((one) => one.monthly_active_tokens),
      ).toEqual([0, 1, 0, 0]);
    });
  });

  it('dates a fact without its own time by its metadata, else by when it was recorded', async () => {
    const recorded = [
      fact('TokenCreated', 'a', undefined, { metadata: { at: '2026-04-03T00:00:00Z' } }),
      fact('CardCreated', 'b'),
    ];
    const reader = await projected([usage, logs], loggedOf(recorded));
    expect((await reportFor(reader, '2026-04')).token_report).toEqual({
      metrics_by_type: {
        token: { count: 1, last_created_at: '2026-04-03T00:00:00.000Z' },
        card: { count: 1, last_created_at: iso(START) },
      },
      included_monthly_active_tokens: 0,
      monthly_active_tokens: 1,
    });
    expect((await reportFor(reader, '2026-05')).token_report.monthly_active_tokens).toBe(1);
  });
});
