import { randomUUID } from 'node:crypto';
import { findEvents, type EventFilter } from '../../src/audit/event-filter';
import type { NewEvent } from '../../src/event-log/event-log';
import type { LedgerLog } from '../../src/event-log/streams';
import { freshFolder } from '../support/folders';
import { openLogIn } from '../support/profile';

const [ONE, OTHER, APPLICATION, KEY, ACTOR] = [
  randomUUID(),
  randomUUID(),
  randomUUID(),
  randomUUID(),
  randomUUID(),
];
const settings = { fingerprintTokens: false, deduplicateTokens: false };

const at = (day: number): string => `2024-01-${String(day).padStart(2, '0')}T00:00:00.000Z`;

const event = (
  type: string,
  data: NewEvent['data'],
  day: number,
  metadata: NewEvent['metadata'] = {},
): NewEvent => ({ id: randomUUID(), type, data, metadata: { version: 1, ...metadata }, recordedAt: at(day) });

const created = (name: string, day: number): NewEvent =>
  event('TenantCreated', { name, ownerId: ACTOR, settings, includedMonthlyActiveTokens: 0 }, day);

/** Named by what the tests look for. */
const history = {
  created: created('One', 1),
  other: created('Other', 2),
  renamed: event('TenantUpdated', { name: 'Uno', settings }, 3, {
    actor: { type: 'application', id: APPLICATION },
    keyId: KEY,
    traceId: 'trace-1',
  }),
  token: event('TokenCreated', { entityId: 'tok_1' }, 4, { traceId: 'trace-1' }),
  read: event('TokenRead', { entityId: 'tok_1' }, 5),
  refused: event(
    'KeyUsed',
    {
      applicationId: APPLICATION,
      keyId: KEY,
      date: at(6).slice(0, 10),
      operations: {},
      refusals: { expired: 1 },
      missingPermissions: [],
      eventsGivenOut: 0,
      firstAt: at(6),
      lastAt: at(6),
    },
    6,
  ),
  unknown: event('SomethingElse', {}, 7),
};
type Name = keyof typeof history;

describe('the events matching a filter', () => {
  let ledgerLog: LedgerLog;
  beforeAll(async () => {
    ledgerLog = await openLogIn(freshFolder());
    const { log, streams } = ledgerLog;
    const { created: first, other, renamed, token, read, refused, unknown } = history;
    await log.append(streams.tenant(ONE), [first], 'no_stream');
    await log.append(streams.tenant(OTHER), [other], 'no_stream');
    await log.append(streams.tenant(ONE), [renamed], 0);
    await log.append(streams.activity(ONE), [token, read, refused, unknown], 'no_stream');
    await log.append('not-ours', [event('TenantCreated', {}, 8)], 'no_stream');
  });
  afterAll(() => ledgerLog.log.close());

  const found = async (filter: EventFilter, onUnreadable = () => undefined): Promise<readonly Name[]> => {
    const names = new Map(Object.entries(history).map(([name, { id }]) => [id, name as Name]));
    const ids: string[] = [];
    for await (const { events } of findEvents(ledgerLog, filter, {}, { onUnreadable }))
      ids.push(...events.map(({ id }) => id));
    return ids.map((id) => names.get(id) ?? ('not ours' as Name));
  };

  const all: readonly Name[] = ['created', 'other', 'renamed', 'token', 'read', 'refused', 'unknown'];
  const cases: readonly (readonly [string, EventFilter, readonly Name[]])[] = [
    ['no filter: all of our events, in order', {}, all],
    ['one tenant', { tenants: [OTHER] }, ['other']],
    ['several tenants', { tenants: [OTHER, ONE] }, all],
    ['types', { types: ['TenantCreated', 'SomethingElse'] }, ['created', 'other', 'unknown']],
    ['an actor', { actor: APPLICATION }, ['renamed']],
    [
      'an entity, with its type in any letter case',
      { entity: { type: 'Token', id: 'tok_1' } },
      ['token', 'read'],
    ],
    ['an operation', { operation: 'Update' }, ['renamed']],
    ['an operation of one entity', { entity: { type: 'token', id: 'tok_1' }, operation: 'read' }, ['read']],
    ['a trace', { trace: 'trace-1' }, ['renamed', 'token']],
    ['a key: by it and about it', { key: KEY }, ['renamed', 'refused']],
    ['from a time on, including it', { since: at(6) }, ['refused', 'unknown']],
    ['before a time', { until: at(2) }, ['created']],
    ['all conditions at once', { tenants: [ONE], trace: 'trace-1', since: at(4) }, ['token']],
    ['what was decided', { source: 'decision' }, ['created', 'other', 'renamed']],
    ['what keys did', { source: 'access' }, ['refused']],
    ['what was reported, whatever it is', { source: 'fact' }, ['token', 'read', 'unknown']],
    ['nobody', { actor: OTHER }, []],
  ];
  it.each(cases)('%s', async (_, filter, expected) => {
    expect(await found(filter)).toEqual(expected);
  });

  it('include events that cannot be read and so have no entity to compare', async () => {
    let unreadable = 0;
    await found({ operation: 'update' }, () => void (unreadable += 1));
    expect(unreadable).toBe(1);
  });
});
