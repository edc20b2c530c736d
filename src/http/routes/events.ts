import { eventStream, type EndReason, type StreamForm } from '../../audit/event-stream';
import type { EventFilter, EventRange } from '../../audit/event-filter';
import { rawEvent } from '../../audit/raw-event';
import { isoNow, monotonicMs } from '../../clock';
import { holds } from '../../domain/authority';
import type { LoggedEvent, Position } from '../../event-log/event-log';
import { upTo } from '../../event-log/reading';
import { codeOf, fault } from '../../fault';
import { uuidFrom } from '../../uuid';
import { findLogPosition } from '../../../projections/log-pages';
import {
  dateParameter,
  flagParameter,
  invalid,
  mustBeInOrder,
  queryCheck,
  textParameter,
  wholeNumberParameter,
} from '../request/validation';
import type { Cursors } from './cursor';
import { eventExample, eventSchema } from './event-schemas';
import { uuid } from './schema';
import { ok, route, type RouteRequest, type RouteParts } from './route';
import { streamBody } from './stream-body';

const PERMISSION = 'log:read';
const NDJSON = 'application/x-ndjson';
const SSE = 'text/event-stream';

const query = queryCheck(
  {
    type: textParameter('Only events of this type.', 'TenantUpdated'),
    entity_type: textParameter('Only events about entities of this type; needs `entity_id`.', 'application'),
    entity_id: textParameter(
      'Only events about this entity; needs `entity_type`.',
      '22222222-2222-4333-8444-555555555555',
    ),
    actor_id: textParameter('Only what this actor did.', 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee'),
    operation: textParameter('Only events of this operation.', 'update'),
    trace_id: textParameter('Only events of requests with this trace id.', 'trace-1'),
    key_id: textParameter('Only events by or about this key.', '33333333-2222-4333-8444-555555555555'),
    start_date: dateParameter('Only events recorded from this moment on.'),
    end_date: dateParameter('Only events recorded before this moment.'),
    after: textParameter('Begin after this `position`; so does the header `Last-Event-ID`.', ''),
    limit: wholeNumberParameter(
      'The maximum number of events.',
      Number.MAX_SAFE_INTEGER,
      Number.MAX_SAFE_INTEGER,
    ),
    follow: flagParameter('`true`: stay open and send new events as they come.'),
  },
  'refused',
);
type Query = ReturnType<typeof query>;

/** Positions are signed, so they are valid for one tenant only, and nobody else's can be guessed. */
const CURSORS = 'events';

export const readPosition = (cursors: Cursors, tenantId: string, cursor: string): Position | undefined =>
  cursors.read(tenantId, CURSORS, cursor);

const afterOf = (
  { tenantId, query: { after }, header }: RouteRequest<undefined, Query>,
  cursors: Cursors,
) => {
  const [field, cursor] = after === undefined ? ['Last-Event-ID', header('last-event-id')] : ['after', after];
  if (cursor === undefined || cursor === '') return undefined;
  const position = readPosition(cursors, tenantId, cursor);
  if (position === undefined) throw invalid({ [field]: ['must be the position of an event of this Tenant'] });
  return position;
};

const filterOf = (tenantId: string, values: Query): EventFilter => {
  const { entity_type, entity_id } = values;
  mustBeInOrder(values);
  if ((entity_type === undefined) !== (entity_id === undefined))
    throw invalid(
      entity_type === undefined
        ? { entity_type: ['is required together with entity_id'] }
        : { entity_id: ['is required together with entity_type'] },
    );
  return {
    tenants: [tenantId],
    types: values.type === undefined ? undefined : [values.type],
    entity:
      entity_type === undefined || entity_id === undefined ? undefined : { type: entity_type, id: entity_id },
    actor: values.actor_id,
    operation: values.operation,
    trace: values.trace_id,
    key: values.key_id,
    since: values.start_date,
    until: values.end_date,
  };
};

const ndjson: StreamForm = {
  event: (_, json) => `${json}\n`,
  heartbeat: () => '\n',
  trailer: (json) => `${json}\n`,
  end: (json) => `${json}\n`,
};

const serverSentEvents: StreamForm = {
  event: (cursor, json) => `id: ${cursor}\ndata: ${json}\n\n`,
  heartbeat: () => ': still here\n\n',
  trailer: (json) => `event: trailer\ndata: ${json}\n\n`,
  end: (json) => `event: end\ndata: ${json}\n\n`,
};

/** An event as its owner sees it: the position is a cursor, and the tenant id is omitted, as it is always the same. */
const viewOf = (event: LoggedEvent, cursor: string, { streams }: RouteParts['events']['ledgerLog']) => {
  const { tenant_id: _, ...raw } = rawEvent(event, streams);
  return { ...raw, position: cursor };
};

const RECHECK_MS = 1_000;

/** A key may expire, be revoked or lose the permission while its stream is open, and the log may be set back. */
const stillAllowed =
  ({ tenantId, caller }: RouteRequest<unknown>, { ledger, mustBeWhole }: RouteParts) =>
  async (): Promise<EndReason | undefined> => {
    mustBeWhole();
    const key = { tenantId, digest: caller.digest, at: isoNow(), deadline: monotonicMs() + RECHECK_MS };
    try {
      const { application } = await ledger.identify(key, 'read');
      return holds(application, PERMISSION) ? undefined : 'permission_missing';
    } catch (error) {
      if (codeOf(error) === 'key_refused') return 'key_refused';
      throw error;
    }
  };

const prefersServerSentEvents = (accept: string | undefined): boolean => accept?.includes(SSE) === true;

export const listEvents = route<undefined, Query>({
  method: 'get',
  path: '/events',
  operationId: 'listEvents',
  summary: 'Stream raw events',
  tag: 'Events',
  permission: PERMISSION,
  query,
  response: {
    status: 200,
    description:
      'Events in the order of the log, one a line, then a trailer with their number and SHA-256. As `text/event-stream` if that is accepted.',
    schema: eventSchema,
    example: eventExample,
    media: [NDJSON, SSE],
  },
  handle: async (request, parts) => {
    const { tenantId, query: values, header } = request;
    const { ledgerLog, tail, open, stopping } = parts.events;
    const after = afterOf(request, parts.cursors);
    const isSse = prefersServerSentEvents(header('accept'));
    const selection = {
      tenantId,
      filter: filterOf(tenantId, values),
      after,
      limit: values.limit,
      follow: values.follow,
    };
    const release = open(tenantId);
    const [gone, stalled] = [new AbortController(), new AbortController()];
    const chunks = eventStream(selection, {
      ledgerLog,
      tail,
      form: isSse ? serverSentEvents : ndjson,
      cursorOf: (position) => parts.cursors.make(tenantId, CURSORS, position),
      jsonOf: (event, cursor) => JSON.stringify(viewOf(event, cursor, ledgerLog)),
      mayRead: stillAllowed(request, parts),
      gone: gone.signal,
      stopping,
      stalled: stalled.signal,
    });
    const onClosed = (): void => {
      gone.abort();
      release();
    };
    const body = streamBody(chunks, { stalled, onClosed });
    return { status: 200, type: isSse ? SSE : NDJSON, body };
  },
});

/** Searches the log after one position up to another, or to the end. */
const searchLog = async (
  tenantId: string,
  id: string,
  range: EventRange,
  { ledgerLog }: RouteParts['events'],
): Promise<LoggedEvent | undefined> => {
  for await (const batch of upTo(ledgerLog.log.readTenant(tenantId, range), range.upTo)) {
    const match = batch.find((event) => event.id === id);
    if (match !== undefined) return match;
  }
  return undefined;
};

/**
 * The index only tells where in the log to look first. An event that was set aside is not in the index, so everything
 * before is searched, too. That costs as much as a stream of all events, and counts as one.
 */
const findEvent = async (
  tenantId: string,
  id: string,
  { events, reader }: RouteParts,
): Promise<LoggedEvent | undefined> => {
  const range = await findLogPosition(reader('logs'), tenantId, id);
  const event = await searchLog(tenantId, id, range, events);
  if (event !== undefined || range.after === undefined) return event;
  const release = events.open(tenantId);
  return searchLog(tenantId, id, { upTo: range.after }, events).finally(release);
};

export const getEvent = route({
  method: 'get',
  path: '/events/:id',
  params: {
    id: {
      description: 'The id of the event.',
      schema: uuid,
      example: '99999999-8888-4777-8666-555555555555',
    },
  },
  operationId: 'getEvent',
  summary: 'Get a raw event',
  tag: 'Events',
  permission: PERMISSION,
  response: {
    status: 200,
    description: 'One event of the Tenant.',
    schema: eventSchema,
    example: eventExample,
  },
  handle: async ({ tenantId, params }, parts) => {
    const id = uuidFrom(params['id']);
    const event = id === undefined ? undefined : await findEvent(tenantId, id, parts);
    if (event === undefined) throw fault('event_not_found', 'This Tenant has no event with this id.');
    const cursor = parts.cursors.make(tenantId, CURSORS, event.position);
    return ok(viewOf(event, cursor, parts.events.ledgerLog));
  },
});
