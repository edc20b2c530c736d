import { beforeDeadline } from '../../async/clock';
import type { EventFilter } from '../../audit/event-filter';
import { eventCsv } from '../../audit/event-csv';
import { eventStream, streamForms, type StreamForm } from '../../audit/event-stream';
import { tenantEvent } from '../../audit/event-views';
import { findEvent, knownPlace } from '../../audit/find-event';
import { eventSchemas } from '../../domain/events';
import { uuidFrom } from '../../domain/texts';
import type { LoggedEvent } from '../../event-log/event-log';
import { fault } from '../../fault';
import { loadTimeout } from '../../ledger/folds';
import type { ApiDependencies } from '../context';
import {
  flagParameter,
  mustBeInOrder,
  choiceParameter,
  textParameter,
  wholeNumberParameter,
  type ValuesOf,
} from '../query-parameters';
import { route, type RouteRequest } from '../route';
import { bytes, described, text, uuid } from '../schema';
import { invalid } from '../validation';
import { eventAtPosition, positionRefused } from './as-of';
import { EVENT_ID, eventLineSchema, eventSchema, streamExample } from './event-schemas';
import { logFilters } from './logs';
import { stillAllowed, streamBody } from './stream-body';

const NDJSON = 'application/x-ndjson';
const SSE = 'text/event-stream';
const CSV = 'text/csv';

const forms: Readonly<Record<string, StreamForm>> = {
  [NDJSON]: streamForms.ndjson,
  [SSE]: streamForms.serverSentEvents,
  [CSV]: eventCsv,
};

const query = {
  type: choiceParameter('Only events of this type.', Object.keys(eventSchemas), 'TenantUpdated'),
  ...logFilters,
  key_id: textParameter('Only events by or about this key.', '33333333-2222-4333-8444-555555555555'),
  after: textParameter('Begin after this `position`; the header `Last-Event-ID` takes precedence.', ''),
  limit: wholeNumberParameter('The maximum number of events. Default: all.', undefined),
  follow: flagParameter('`true`: stay open and send new events as they come.'),
};
type Query = ValuesOf<typeof query>;

const afterOf = async (request: RouteRequest<undefined, Query>, dependencies: ApiDependencies) => {
  // A browser reconnects to the same address, and says in the header where it was.
  const last = request.header('last-event-id') ?? '';
  const [field, position] = last === '' ? ['after', request.query.after] : ['Last-Event-ID', last];
  if (position === undefined || position === '') return undefined;
  const place = await eventAtPosition(position, request, dependencies);
  if (place === undefined) throw invalid({ [field]: [positionRefused()] });
  return place;
};

const filterOf = (tenantId: string, values: Query): EventFilter => {
  const { entity_type: type, entity_id: id } = values;
  mustBeInOrder(values);
  return {
    tenants: [tenantId],
    types: values.type === undefined ? undefined : [values.type],
    entity: type === undefined && id === undefined ? undefined : { type, id },
    actor: values.actor_id,
    operation: values.operation,
    trace: values.trace_id,
    source: values.source,
    key: values.key_id,
    since: values.start_date,
    until: values.end_date,
  };
};

export const listEvents = route({
  method: 'get',
  path: '/events',
  summary: 'Stream raw events',
  permission: 'log:read',
  query,
  response: {
    description:
      'Events in the order of the log, one per line, then a trailer with their number and SHA-256. As `text/event-stream` or, without a trailer, `text/csv` if the client prefers that.',
    lines: eventLineSchema,
    media: {
      // So generated clients hand out the bytes, and do not try to parse them as one JSON value.
      [NDJSON]: { schema: bytes, example: streamExample(streamForms.ndjson) },
      [SSE]: { schema: text, example: streamExample(streamForms.serverSentEvents) },
      [CSV]: { schema: text, example: streamExample(eventCsv) },
    },
  },
  handle: async (request, dependencies) => {
    const { tenantId, query: values, gaveOut } = request;
    const { limit, follow } = values;
    const type = request.accepts(...Object.keys(forms)) || NDJSON;
    const form = forms[type] ?? streamForms.ndjson;
    if (follow && type === CSV)
      throw invalid({ follow: ['CSV cannot be followed: ask for application/x-ndjson.'] });
    const after = await afterOf(request, dependencies);
    const filter = filterOf(tenantId, values);
    const release = dependencies.events.openStream(tenantId, follow ? 'follow' : 'export');
    const gone = new AbortController();
    const texts = eventStream({ tenantId, filter, after, limit, follow, form }, dependencies.events, {
      mayRead: stillAllowed(request, dependencies),
      gaveOut,
      gone: gone.signal,
    });
    const body = streamBody(texts, () => {
      gone.abort();
      release();
    });
    return { type, body };
  },
});

export const getEvent = route({
  method: 'get',
  path: '/events/:id',
  params: { id: described(uuid, 'The id of the event.', EVENT_ID) },
  summary: 'Get a raw event',
  permission: 'log:read',
  response: { description: 'One event of the Tenant.', schema: eventSchema },
  handle: async ({ tenantId, params, deadline, gone }, { events, readModels }) => {
    const id = uuidFrom(params['id']);
    const find = async (wanted: string): Promise<LoggedEvent | undefined> => {
      const known = await readModels.query(tenantId, (reader) => knownPlace(reader, tenantId, wanted));
      return findEvent(events, known.value, { tenantId, id: wanted, deadline, gone: gone() });
    };
    const event = id === undefined ? undefined : await beforeDeadline(find(id), deadline, loadTimeout);
    if (event === undefined) throw fault('event_not_found', 'This Tenant has no event with this id.');
    return { body: tenantEvent(event, events.ledgerLog.streams) };
  },
});
