import { hash } from 'node:crypto';
import { endReasons, type StreamForm } from '../../audit/event-stream';
import { count, described, listOf, moment, record, sampleOf, text, uuid, type Schema } from '../schema';
import { logSchema } from './logs';

const anything: Schema = {};

const change = record('Change', {
  field: described(text, 'Which field.', 'name'),
  from: described(anything, 'Its value before; null: there was none.'),
  to: described(anything, 'Its value after; null: there is none.'),
});

/** A raw event as its owner sees it. */
export const eventSchema: Schema = record(
  'Event',
  {
    id: described(uuid, 'The id of the event; `/logs` shows the same one.'),
    type: described(text, 'What happened.', 'TenantUpdated'),
    version: described(count, "The version of the type's schema.", 1),
    stream: described(text, 'Where it is stored.'),
    revision: described(count, 'Its number within the stream, from 0.'),
    position: described(
      text,
      'Its kind of stream and revision: the same in every copy of the log. For `after`, `Last-Event-ID` and `as_of`.',
      'tenant:4',
    ),
    recorded_at: described(moment, 'When the log recorded it.'),
    actor: described(anything, 'Who caused it: `type` and `id`.'),
    trace_id: described(anything, 'The trace id of the request that caused it.'),
    key_id: described(anything, 'The key that the request was made with.'),
    data: described(anything, 'What the event says; digests of keys are cut.'),
    metadata: described(anything, 'Everything that is stored with it.'),
    log: described(logSchema, 'Its row as `/logs` shows it. Absent: the event cannot be read.'),
    changes: described(
      listOf(change),
      'What it replaced or ended, before and after, as recorded with it; empty for other events. Absent: as with `log`.',
    ),
  },
  ['actor', 'trace_id', 'key_id', 'log', 'changes'],
);

export const eventExample = {
  id: '99999999-8888-4777-8666-555555555555',
  type: 'TenantUpdated',
  version: 1,
  stream: 'tenant-11111111-2222-4333-8444-555555555555',
  revision: 4,
  position: 'tenant:4',
  recorded_at: '2026-01-31T12:00:00.001Z',
  actor: { type: 'application', id: 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee' },
  trace_id: 'trace-1',
  key_id: '33333333-2222-4333-8444-555555555555',
  data: { name: 'Acme', settings: { fingerprintTokens: false, deduplicateTokens: true } },
  metadata: { version: 1, at: '2026-01-31T12:00:00.000Z' },
  log: sampleOf(logSchema),
  changes: [{ field: 'name', from: 'Acme Ltd', to: 'Acme' }],
};

const trailer = record(
  'EventTrailer',
  {
    log: described(uuid, 'The identity of the log.'),
    view: described({ type: 'string', enum: ['tenant'] }, 'Positions are those that the Tenant sees.'),
    filter: described({ type: 'object' }, 'The filters of the request, and the Tenant.'),
    after: described(text, 'The position after which the stream began.', 'tenant:3'),
    limit: described(count, '`limit`', 100),
    up_to: described(
      { type: 'object', additionalProperties: count },
      'The last revisions that the stream covers, by kind of stream; absent: there are no events.',
    ),
    events: described(count, 'The number of events before it. If it is the limit, there may be more.', 1),
    sha256: described(
      { type: 'string', pattern: '^[0-9a-f]{64}$' },
      'The SHA-256 of all lines before it, with their line feeds.',
    ),
  },
  ['after', 'limit', 'up_to'],
);

const end = record(
  'EventStreamEnd',
  {
    reason: described(text, 'Why it ended early. More reasons may come.', ...endReasons),
    position: described(text, 'Where to resume: `after` of the next request; absent: at the start.'),
  },
  ['position'],
);

/** What a line of the stream is. */
export const eventLineSchema: Schema = {
  title: 'EventLine',
  description:
    'An event; or, as the last line, the trailer of a stream that is finished, or why it ended early. Skip empty lines.',
  oneOf: [
    eventSchema,
    record('EventTrailerLine', { trailer: described(trailer, 'What the stream contained.') }),
    record('EventEndLine', { end: described(end, 'Why the stream ended early.') }),
  ],
};

const trailerExample = {
  trailer: {
    log: '77777777-8888-4777-8666-555555555555',
    view: 'tenant',
    filter: { tenants: ['11111111-2222-4333-8444-555555555555'] },
    up_to: { tenant: 4 },
    events: 1,
    sha256: hash('sha256', `${JSON.stringify(eventExample)}\n`),
  },
};

/** A whole stream with one event. */
export const streamExample = (form: StreamForm): string =>
  [
    form.event(JSON.stringify(eventExample), eventExample.position),
    form.last('trailer', JSON.stringify(trailerExample)),
  ].join('');
