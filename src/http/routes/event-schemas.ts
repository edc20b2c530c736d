import { count, described, moment, record, text, uuid, type Schema } from './schema';

const anything: Schema = {};

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
    stored_at: described(moment, 'When the log received it, where some clock was ahead.'),
    actor: described(anything, 'Who caused it: `type` and `id`.'),
    trace_id: described(anything, 'The trace id of the request that caused it.'),
    key_id: described(anything, 'The key that the request was made with.'),
    data: described(anything, 'What the event says; digests of keys are cut.'),
    metadata: described(anything, 'Everything that is stored with it.'),
  },
  ['stored_at', 'actor', 'trace_id', 'key_id'],
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
};
