import { entityFactTypes } from '../../src/domain/events';
import { decode } from '../../src/event-log/codec';
import { MAX_APPEND_BYTES } from '../../src/event-log/event-log';
import { streamNames } from '../../src/event-log/streams';
import { factsIn, type CheckedFact } from '../../src/ingest/fact-line';
import { MAX_LINE_BYTES } from '../../src/ingest/lines';
import { makeKey, makeServiceKey } from '../../src/ledger/api-key';

const ID = '6f6c3a2e-0d5b-4b0a-9a59-1f0c2d3e4f50';
const TENANT = '7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11';
const ACTOR = 'c0ffee00-0000-4000-8000-000000000001';
const NOW = '2026-03-01T12:00:00.000Z';

const good = { id: ID, tenant_id: TENANT, type: 'TokenCreated', data: { entityId: 'tok_1' } };
const activity = {
  ...good,
  type: 'ActivityReported',
  data: { entityId: 'wh_1', entityType: 'webhook', operation: 'send' },
};

const read = (value: unknown, receipt: Parameters<typeof factsIn>[1] = { at: NOW }) => {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const [{ line, ...fact }] = [...factsIn([{ number: 1, text }], receipt)] as [CheckedFact];
  expect(line).toBe(1);
  return fact;
};

/** The event of a line as the log returns it: no accepted line may be bad in the log. */
const decoded = (line: unknown) => {
  const fact = read(line);
  if ('fault' in fact) throw new Error(`It was refused: ${fact.fault}`);
  const streams = streamNames();
  const kept = JSON.parse(JSON.stringify(fact.event)) as typeof fact.event;
  const logged = { ...kept, stream: streams.activity(fact.tenantId), revision: 0 };
  return decode({ ...logged, position: '1', recordedAt: NOW }, streams);
};

const withData = (more: Record<string, unknown>) => ({ ...good, data: { ...good.data, ...more } });
const without = (member: string) =>
  Object.fromEntries(Object.entries(good).filter(([name]) => name !== member));

describe('a valid fact line', () => {
  it.each([...entityFactTypes, 'ActivityReported'])('may be a %s', (type) => {
    expect(decoded({ ...activity, type })).toMatchObject({
      status: 'good',
      event: { type, id: ID, at: NOW },
    });
  });

  it('becomes an event with its content and nothing else', () => {
    const data = { entityId: 'tok_1', occurredAt: '2026-01-31T12:00:00+02:00' };
    const actor = { type: 'user', id: ACTOR, name: 'Eve' };
    const metadata = { version: 1, at: NOW, actor: { type: 'user', id: ACTOR }, traceId: 'a.b_c:d-1' };
    const texts = [data, metadata].map((value) => JSON.stringify(value));
    expect(read({ ...good, version: 1, actor, trace_id: 'a.b_c:d-1', data, color: 'red' })).toEqual({
      tenantId: TENANT,
      bytes: texts.join('').length + 2 * good.type.length,
      event: { id: ID, type: 'TokenCreated', data, metadata },
    });
    expect(read(good)).toMatchObject({ event: { metadata: { version: 1, at: NOW } } });
    const service = { id: ID, name: 'Gateway' };
    expect(read({ ...good, key_id: ACTOR.toUpperCase() }, { at: NOW, service })).toMatchObject({
      event: { metadata: { version: 1, at: NOW, keyId: ACTOR, service } },
    });
  });

  it.each<[string, unknown]>([
    ['spaces around it', `  ${JSON.stringify(good)}\t`],
    ['an Application as its actor', { ...good, actor: { type: 'application', id: ACTOR } }],
    ['a trace id of 128 characters', { ...good, trace_id: 'x'.repeat(128) }],
    ['an entity id of 250 characters', withData({ entityId: 'x'.repeat(250) })],
    ['an entity id of any characters', withData({ entityId: '../漢字 😀\u0000"' })],
    ['unknown data', withData({ amount: 12, nested: { deep: [null, true] }, type: 7, message: 'm' })],
    ['its own tenant in its data', withData({ tenantId: TENANT })],
    ['its own tenant in its data, in capitals', withData({ tenantId: TENANT.toUpperCase() })],
    ['a time with nanoseconds', withData({ occurredAt: '2026-01-31T12:00:00.123456789Z' })],
    ['a time with an offset', withData({ occurredAt: '2026-01-31T12:00:00-11:30' })],
    ['the first time that is believed', withData({ occurredAt: '2000-01-01T00:00:00Z' })],
    ['a time a day ahead', withData({ occurredAt: '2026-03-02T12:00:00Z' })],
    ['the key that it was done with', { ...good, key_id: ACTOR }],
    [
      'members that are not like known ones',
      { ...withData({ usage: 1, cardIds: [] }), sequence: 7, tags: [] },
    ],
    ['a word like key_ or svc_ in its data', withData({ note: 'my svc_gateway, key_refused' })],
    ['a member twice: the last one counts', `{"id":"x",${JSON.stringify(good).slice(1)}`],
    ['its own message', { ...activity, data: { ...activity.data, message: 'x'.repeat(10_000) } }],
  ])('may have %s', (_, line) => {
    expect(decoded(line)).toMatchObject({ status: 'good', event: { id: ID, tenantId: TENANT } });
  });

  it('is case-insensitive in its ids', () => {
    const actor = { type: 'user', id: ACTOR.toUpperCase() };
    const capitals = { ...good, id: ID.toUpperCase(), tenant_id: TENANT.toUpperCase(), actor };
    expect(read(capitals)).toEqual(read({ ...good, actor: { type: 'user', id: ACTOR } }));
    for (const tenantId of [TENANT, TENANT.toUpperCase()])
      expect(decoded({ ...capitals, data: { entityId: 'tok_1', tenantId } })).toMatchObject({
        status: 'good',
      });
  });
});

const KEY_IN_DATA = '"data" must not contain an API key';
const misspelt = (name: string, right?: string): string =>
  `"${name}" is not a known member: did you mean "${right}"?`;
const NOT_OBJECT = 'it must be one JSON object';
const WRONG_ID = '"id" must be a UUID';
const WRONG_TENANT = '"tenant_id" must be a UUID';
const WRONG_VERSION = '"version" must be 1 for TokenCreated';
const WRONG_ACTOR = '"actor" must be {"type": "application" or "user", "id": a UUID}';
const WRONG_TRACE = '"trace_id" must be 1 to 128 of A-Z a-z 0-9 . _ : - and not an API key';
const WORD = '^[A-Za-z][A-Za-z0-9_-]{0,63}$';
const WRONG_TIME = '"data" does not fit TokenCreated: /occurredAt must match format "date-time"';

const refused: readonly [unknown, string][] = [
  ['{"id":', 'it is not JSON'],
  [`${JSON.stringify(good)}${JSON.stringify(good)}`, 'it is not JSON'],
  ['null', NOT_OBJECT],
  ['"text"', NOT_OBJECT],
  [[good], NOT_OBJECT],
  [{}, WRONG_ID],
  [`{"__proto__":${JSON.stringify(good)}}`, WRONG_ID],
  ...['', 'x', 1, null, [ID], `{${ID}}`, `${ID}0`, ID.replaceAll('-', ''), `urn:uuid:${ID}`].flatMap(
    (value): [unknown, string][] => [
      [{ ...good, id: value }, WRONG_ID],
      [{ ...good, tenant_id: value }, WRONG_TENANT],
    ],
  ),
  [without('tenant_id'), WRONG_TENANT],
  [without('type'), '"type" is not a known fact: undefined'],
  ...['', 'tokenCreated', 'TokenStolen', 'TenantUpdated', 'KeyAdded', 'toString', '__proto__', 1, null].map(
    (type): [unknown, string] => [{ ...good, type }, `"type" is not a known fact: ${JSON.stringify(type)}`],
  ),
  ...[0, 2, 1.5, -1, '1', null, true, [1], 1e99].map((version): [unknown, string] => [
    { ...good, version },
    WRONG_VERSION,
  ]),
  ...[
    null,
    'user',
    [],
    {},
    { type: 'user' },
    { id: ACTOR },
    { type: 'operator', id: ACTOR },
    { type: 'user', id: 'eve' },
    { type: ['user'], id: ACTOR },
  ].map((actor): [unknown, string] => [{ ...good, actor }, WRONG_ACTOR]),
  ...['', 'a b', 'ä', 'x'.repeat(129), 'a\n', 1, null, {}, makeKey(TENANT)].map(
    (trace_id): [unknown, string] => [{ ...good, trace_id }, WRONG_TRACE],
  ),
  [without('data'), '"data" must be an object'],
  ...[null, 'text', 1, [], [{ entityId: 'a' }]].map((data): [unknown, string] => [
    { ...good, data },
    '"data" must be an object',
  ]),
  [{ ...good, data: {} }, `"data" does not fit TokenCreated: must have required property 'entityId'`],
  [
    JSON.stringify(good).replace('"entityId":"tok_1"', '"__proto__":{"entityId":"tok_1"}'),
    `"data" does not fit TokenCreated: must have required property 'entityId'`,
  ],
  [
    withData({ entityId: '' }),
    '"data" does not fit TokenCreated: /entityId must NOT have fewer than 1 characters',
  ],
  [
    withData({ entityId: 'x'.repeat(251) }),
    '"data" does not fit TokenCreated: /entityId must NOT have more than 250 characters',
  ],
  ...[1, null, ['a'], {}].map((entityId): [unknown, string] => [
    withData({ entityId }),
    '"data" does not fit TokenCreated: /entityId must be string',
  ]),
  [withData({ message: 1 }), '"data" does not fit TokenCreated: /message must be string'],
  [withData({ occurredAt: 1 }), '"data" does not fit TokenCreated: /occurredAt must be string'],
  [withData({ occurredAt: null }), '"data" does not fit TokenCreated: /occurredAt must be string'],
  ...[
    '',
    'yesterday',
    '2026-01-31',
    '2026-01-31T12:00:00',
    '2026-02-30T12:00:00Z',
    '2016-12-31T23:59:60Z',
    '+002026-01-31T12:00:00Z',
    '0000-01-01T00:00:00+00:01',
    '9999-12-31T23:59:59-00:01',
  ].map((occurredAt): [unknown, string] => [withData({ occurredAt }), WRONG_TIME]),
  ...[
    '1999-12-31T23:59:59.999Z',
    '0000-01-01T00:00:00Z',
    '2026-03-02T12:00:00.001Z',
    '9999-12-31T23:59:59Z',
  ].map((occurredAt): [unknown, string] => [
    withData({ occurredAt }),
    '"occurredAt" must be in 2000 or later, and at most a day ahead',
  ]),
  ...['tenant', 'Application', 'KEY', 'event'].map((entityType): [unknown, string] => [
    { ...activity, data: { ...activity.data, entityType } },
    `"entityType" must not be "${entityType}": only this service says what happened to it`,
  ]),
  ...['x', 1, null].map((key_id): [unknown, string] => [{ ...good, key_id }, '"key_id" must be a UUID']),
  ...[
    ['tenantId', 'tenant_id'],
    ['Type', 'type'],
    ['_id', 'id'],
    ['traceid', 'trace_id'],
    ['trace-id', 'trace_id'],
    ['keyid', 'key_id'],
    ['verison', 'version'],
    ['actr', 'actor'],
    ['dat', 'data'],
  ].map(([name = '', right]): [unknown, string] => [{ ...good, [name]: ID }, misspelt(name, right)]),
  ...[
    ['occured_at', 'occurredAt'],
    ['OccurredAt', 'occurredAt'],
    ['occuredAt', 'occurredAt'],
    ['massage', 'message'],
    ['entity_id', 'entityId'],
  ].map(([name = '', right]): [unknown, string] => [withData({ [name]: 'x' }), misspelt(name, right)]),
  ...[makeKey(TENANT), `a ${makeServiceKey()}.`, `svc_${'a'.repeat(30)}`].flatMap(
    (key): [unknown, string][] => [
      [withData({ entityId: key }), KEY_IN_DATA],
      [withData({ nested: [{ [key]: 1 }] }), KEY_IN_DATA],
    ],
  ),
  [withData({ note: '\ud800' }), '"data" has half of a character (a lone surrogate)'],
  [
    JSON.stringify(withData({ more: 1 })).replace('"more"', '"__proto__"'),
    '"data" must not contain __proto__',
  ],
  [withData({ tenantId: ID }), '"data" names another tenant'],
  [withData({ tenantId: `urn:uuid:${TENANT}` }), '"data" names another tenant'],
  [withData({ tenantId: 'x' }), '"data" does not fit TokenCreated: /tenantId must match format "uuid"'],
  ...['entityType', 'operation'].map((member): [unknown, string] => [
    { ...good, type: 'ActivityReported', data: { ...activity.data, [member]: undefined } },
    `"data" does not fit ActivityReported: must have required property '${member}'`,
  ]),
  ...['', 'two words', '1st', 'x'.repeat(65), 'ä'].map((entityType): [unknown, string] => [
    { ...activity, data: { ...activity.data, entityType } },
    `"data" does not fit ActivityReported: /entityType must match pattern "${WORD}"`,
  ]),
  ...['', 'two words', '1st', 'x'.repeat(65), 'ä'].map((operation): [unknown, string] => [
    { ...activity, data: { ...activity.data, operation } },
    `"data" does not fit ActivityReported: /operation must match pattern "${WORD}"`,
  ]),
];

describe('an invalid fact line', () => {
  it('is refused with the reason', () => {
    expect(refused.map(([line]) => ({ line, fault: (read(line) as { fault?: string }).fault }))).toEqual(
      refused.map(([line, reason]) => ({ line, fault: reason })),
    );
  });

  it.each(['9007199254740992', '-9007199254740993', '1e20', '1e400', '[{"a":-1e999}]'])(
    'is refused if a number would be rounded: %s',
    (number) => {
      const line = JSON.stringify(withData({ more: 0 })).replace('"more":0', `"more":${number}`);
      expect(read(line)).toMatchObject({
        fault: '"data" has a number beyond 9007199254740991, which would be rounded: send it as text',
      });
    },
  );

  it('is refused with at most 200 characters, in which keys are masked, and with its id', () => {
    const key = makeKey(TENANT);
    expect(read({ ...good, type: key })).toEqual({ fault: '"type" is not a known fact: "key_***"', id: ID });
    const long = read({ ...good, type: 'x'.repeat(1_000) }) as { fault: string };
    expect(long.fault).toHaveLength(200);
  });

  it('is not refused for numbers that are kept', () => {
    expect(read(withData({ more: [9_007_199_254_740_991, -1.5, 1e-300, 0.1] }))).toMatchObject({
      tenantId: TENANT,
    });
  });

  it('fits into an append, however long it is when stored', () => {
    const count = Math.floor((MAX_LINE_BYTES - 500) / 5);
    const numbers = `[${Array.from({ length: count }, () => '1e15').join(',')}]`;
    const fact = read(JSON.stringify(withData({ more: 0 })).replace('"more":0', `"more":${numbers}`));
    expect(fact).toMatchObject({ tenantId: TENANT });
    expect((fact as { bytes: number }).bytes).toBeLessThan(MAX_APPEND_BYTES);
  });

  it.each([
    [500, undefined],
    [501, '"data" is nested deeper than 500 levels'],
    [100_000, '"data" is nested deeper than 500 levels'],
  ])('may have data of 500 levels, of %i: %s', (levels, fault) => {
    const lists = levels - 1;
    const deep = `${'['.repeat(lists)}${']'.repeat(lists)}`;
    const line = JSON.stringify(withData({ more: 0 })).replace('"more":0', `"more":${deep}`);
    expect((read(line) as { readonly fault?: string }).fault).toBe(fault);
  });
});
