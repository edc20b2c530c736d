import { hash } from 'node:crypto';
import { endReasons, type StreamForm } from '../../audit/event-stream';
import {
  count,
  described,
  listOf,
  moment,
  record,
  sampleOf,
  text,
  uuid,
  type Schema,
  oneOf,
} from '../schema';
import { logSchema } from './logs';

const anything: Schema = {};

export const EVENT_ID = '99999999-8888-4777-8666-555555555555';
const KEY_ID = '33333333-2222-4333-8444-555555555555';
const POSITION = 'tenant:4';

const change = record('Change', {
  field: described(text, 'Which field.', 'name'),
  from: described(anything, 'Its value before; null: there was none.', 'Acme Ltd'),
  to: described(anything, 'Its value after; null: there is none.', 'Acme'),
});

/** A raw event as its owner sees it. */
export const eventSchema: Schema = record(
  'Event',
  {
    id: described(uuid, 'The id of the event; `/logs` shows the same one.', EVENT_ID),
    type: described(text, 'What happened.', 'TenantUpdated'),
    version: described(count, "The version of the type's schema.", 1),
    stream: described(text, 'Where it is stored.', 'tenant-11111111-2222-4333-8444-555555555555'),
    revision: described(count, 'Its number within the stream, from 0.', 4),
    position: described(
      text,
      'Its kind of stream and revision: the same in every copy of the log. For `after`, `Last-Event-ID` and `as_of`.',
      POSITION,
    ),
    recorded_at: described(moment, 'When the log recorded it.'),
    actor: described(
      anything,
      'Who caused it: `type`, `id` and, of an Application, the `name` that it had then.',
      { type: 'application', id: 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee', name: 'Backend' },
    ),
    trace_id: described(anything, 'The trace id of the request that caused it.', 'trace-1'),
    key_id: described(anything, 'The key that the request was made with.', KEY_ID),
    data: described(
      anything,
      'What the event says. Of the digest of a key, the SHA-256 is shown: `digest_sha256`.',
      { name: 'Acme', settings: { fingerprintTokens: false, deduplicateTokens: true } },
    ),
    metadata: described(anything, 'Everything that is stored with it.', {
      version: 1,
      at: '2026-01-31T12:00:00.000Z',
    }),
    log: described(logSchema, 'Its row as `/logs` shows it. Absent: the event cannot be read.'),
    changes: described(
      listOf(change),
      'What it replaced or ended, before and after, as recorded with it; empty for other events. Absent: as with `log`.',
    ),
  },
  ['actor', 'trace_id', 'key_id', 'log', 'changes'],
);

const trailer = record(
  'EventTrailer',
  {
    log: described(uuid, 'The identity of the log.'),
    view: described(oneOf(['tenant']), 'Positions are those that the Tenant sees.'),
    filter: described({ type: 'object' }, 'The filters of the request, and the Tenant.', {
      tenants: ['11111111-2222-4333-8444-555555555555'],
    }),
    after: described(text, 'The position after which the stream began.'),
    limit: described(count, '`limit`'),
    up_to: described(
      { type: 'object', additionalProperties: count },
      'The last revisions that the stream covers, by kind of stream; absent: there are no events.',
      { tenant: 4 },
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

/** A whole stream with one event. */
export const streamExample = (form: StreamForm): string => {
  const event = JSON.stringify(sampleOf(eventSchema));
  const { sha256: _unknown, ...known } = sampleOf(trailer) as Readonly<Record<string, unknown>>;
  const last = { trailer: { ...known, sha256: hash('sha256', `${event}\n`) } };
  return (form.head ?? '') + form.event(event, POSITION) + form.last('trailer', JSON.stringify(last));
};
