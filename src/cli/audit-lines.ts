import { styleText } from 'node:util';
import { changesIn, rawEvent, type RawEvent } from '../audit/event-views';
import { auditLine } from '../domain/audit-wording';
import type { FieldChange } from '../domain/events';
import { decode, type Decoded } from '../event-log/codec';
import { type LoggedEvent, isJsonObject } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { valueText, visible } from './output';

type Style = 'dim' | 'bold' | 'red' | 'green';
type Paint = (text: string, style: Style) => string;

const colored: Paint = (text, style) => styleText(style, text);
const plain: Paint = (text) => text;

const shown = (value: unknown): string => visible(valueText(value) ?? '');

/** With the operator's own name on the machine, since several operators may have the same id. */
const actorText = (actor: Readonly<Record<string, unknown>>): string => {
  const osUser = actor['osUser'] === undefined ? '' : ` (${shown(actor['osUser'])})`;
  return `${shown(actor['type'])} ${shown(actor['id'])}${osUser}`;
};

/** The last address, or all that an event sums up. */
const placesOf = (metadata: unknown): string => {
  const { client, clients = [client] } = isJsonObject(metadata) ? metadata : {};
  const addresses = [clients]
    .flat()
    .flatMap((each) => (isJsonObject(each) ? shown(each['address'] ?? 'others') : []));
  return addresses.length === 0 ? '' : `from ${addresses.join(', ')}`;
};

const authorOf = ({ actor, key_id, trace_id, metadata }: RawEvent): string => {
  const who = isJsonObject(actor) ? `by ${actorText(actor)}` : '';
  const key = key_id === undefined ? '' : `key ${shown(key_id)}`;
  const trace = trace_id === undefined ? '' : `trace ${shown(trace_id)}`;
  return [who, key, trace, placesOf(metadata)].filter((text) => text !== '').join('  ');
};

const entityOf = (decoded: Decoded, raw: RawEvent): string => {
  if (decoded.status !== 'good') return shown(raw.data);
  const { entityType, entityId, message } = auditLine(decoded.event);
  if (entityType === 'tenant') return '';
  const summary = decoded.event.type === 'KeyUsed' ? `: ${message}` : '';
  return visible(`${entityType} ${entityId}${summary}`);
};

/** One human-readable line per event: time, id, type, entity, what it changed, and who caused it. */
export const prettyLine = (streams: Streams, useColors: boolean) => {
  const paint = useColors ? colored : plain;
  const changeText = ({ field, from, to }: FieldChange): string =>
    `${field}: ${paint(visible(JSON.stringify(from)), 'red')} → ${paint(visible(JSON.stringify(to)), 'green')}`;

  return (event: LoggedEvent): string => {
    const raw = rawEvent(event, streams);
    const decoded = decode(event, streams);
    const changes = decoded.status === 'good' ? changesIn(event) : [];
    return [
      paint(event.recordedAt, 'dim'),
      event.id,
      paint(visible(event.type), 'bold'),
      decoded.status === 'bad' ? paint(`unreadable: ${visible(decoded.reason)}`, 'red') : '',
      raw.tenant_id === undefined ? 'operator' : `tenant ${raw.tenant_id}`,
      entityOf(decoded, raw),
      changes.map(changeText).join(', '),
      paint(authorOf(raw), 'dim'),
    ]
      .filter((text) => text !== '')
      .join('  ');
  };
};
