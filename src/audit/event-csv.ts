import { csvText } from '../csv';
import { fault } from '../fault';
import type { StreamForm } from './event-stream';
import type { TenantEvent } from './event-views';

/** What `metadata` says of the clients of a request, or of the day of a key. */
interface SeenFrom {
  readonly client?: { readonly address?: string; readonly userAgent?: string };
  readonly clients?: readonly { readonly address?: string }[];
}

const addressesIn = ({ client, clients }: SeenFrom): string =>
  clients === undefined ? (client?.address ?? '') : clients.flatMap(({ address }) => address ?? []).join(' ');

const changeText = ({ field, from, to }: NonNullable<TenantEvent['changes']>[number]): string =>
  `${field}: ${JSON.stringify(from)} → ${JSON.stringify(to)}`;

/** The columns of a raw event, each with what stands in it. */
const columns: Readonly<Record<string, (event: TenantEvent) => unknown>> = {
  id: ({ id }) => id,
  position: ({ position }) => position,
  recorded_at: ({ recorded_at }) => recorded_at,
  occurred_at: ({ log }) => log?.occurred_at,
  type: ({ type }) => type,
  source: ({ log }) => log?.source,
  entity_type: ({ log }) => log?.entity_type,
  entity_id: ({ log }) => log?.entity_id,
  operation: ({ log }) => log?.operation,
  message: ({ log }) => log?.message,
  changes: ({ changes = [] }) => changes.map(changeText).join('; '),
  actor_type: ({ log }) => log?.actor_type,
  actor_id: ({ log }) => log?.actor_id,
  actor_name: ({ log }) => log?.actor_name,
  key_id: ({ key_id }) => key_id,
  client_addresses: ({ metadata }) => addressesIn(metadata as SeenFrom),
  user_agent: ({ metadata }) => (metadata as SeenFrom).client?.userAgent,
  trace_id: ({ trace_id }) => trace_id,
};

/**
 * One line for each event. CSV has no place to say that it is not complete, so a stream that ends early is cut off, and
 * it is not followed.
 */
export const eventCsv: StreamForm = {
  head: csvText([Object.keys(columns)]),
  event: (json) => {
    const event = JSON.parse(json) as TenantEvent;
    return csvText([Object.values(columns).map((valueOf) => valueOf(event))]);
  },
  heartbeat: '',
  last: (name, json) => {
    if (name === 'end') throw fault('stream_cut_off', `The stream ended early: ${json}.`);
    return '';
  },
};
