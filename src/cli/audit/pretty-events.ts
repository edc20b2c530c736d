import { styleText } from 'node:util';
import type { Change } from '../../audit/entity-fields';
import type { EventLines } from '../../audit/event-lines';
import { rawEvent, type RawEvent } from '../../audit/event-views';
import { updateChanges } from '../../audit/tenant-history';
import { auditLine } from '../../domain/audit-wording';
import { decode } from '../../event-log/codec';
import type { LoggedEvent } from '../../event-log/event-log';
import type { LedgerLog } from '../../event-log/ledger-log';
import { isJsonObject } from '../../json';
import { valueText, visible } from '../output';

type Style = 'dim' | 'bold' | 'red' | 'green';
type Paint = (text: string, style: Style) => string;

const colored: Paint = (text, style) => styleText(style, text);
const plain: Paint = (text) => text;

const shown = (value: unknown): string => visible(valueText(value) ?? '');

export const changeText = ({ field, from, to }: Change, paint = plain): string =>
  `${field}: ${paint(visible(JSON.stringify(from)), 'red')} → ${paint(visible(JSON.stringify(to)), 'green')}`;

/** With the operator's own name on the machine, since several operators may have the same id. */
export const actorText = (actor: Readonly<Record<string, unknown>>): string => {
  const osUser = actor['osUser'] === undefined ? '' : ` (${shown(actor['osUser'])})`;
  return `${shown(actor['type'])} ${shown(actor['id'])}${osUser}`;
};

const authorOf = ({ actor, key_id, trace_id }: RawEvent): string => {
  const who = isJsonObject(actor) ? `by ${actorText(actor)}` : '';
  const key = key_id === undefined ? '' : `key ${shown(key_id)}`;
  const trace = trace_id === undefined ? '' : `trace ${shown(trace_id)}`;
  return [who, key, trace].filter((text) => text !== '').join('  ');
};

/** One human-readable line per event: time, id, type, entity, what an update changed, and who caused it. */
export const prettyLines = (ledgerLog: LedgerLog, useColors: boolean): EventLines => {
  const paint = useColors ? colored : plain;
  const changesOf = updateChanges(ledgerLog);

  const entityOf = (decoded: ReturnType<typeof decode>, raw: RawEvent): string => {
    if (decoded.status !== 'good') return shown(raw.data);
    const { entityType, entityId, message } = auditLine(decoded.event);
    if (entityType === 'tenant') return '';
    const summary = decoded.event.type === 'KeyUsed' ? `: ${message}` : '';
    return visible(`${entityType} ${entityId}${summary}`);
  };

  const pretty = async (event: LoggedEvent): Promise<string> => {
    const raw = rawEvent(event, ledgerLog.streams);
    const decoded = decode(event, ledgerLog.streams);
    const isChange = decoded.status === 'good' && decoded.kind === 'tenant';
    const changes = isChange ? await changesOf(decoded.event) : [];
    return [
      paint(event.recordedAt, 'dim'),
      event.id,
      paint(visible(event.type), 'bold'),
      decoded.status === 'bad' ? paint(`unreadable: ${visible(decoded.reason)}`, 'red') : '',
      raw.tenant_id === undefined ? 'operator' : `tenant ${raw.tenant_id}`,
      entityOf(decoded, raw),
      changes.map((change) => changeText(change, paint)).join(', '),
      paint(authorOf(raw), 'dim'),
    ]
      .filter((text) => text !== '')
      .join('  ');
  };

  return {
    positionOf: ({ position }) => position,
    linesOf: async (events) => {
      const lines: string[] = [];
      for (const event of events) lines.push(await pretty(event));
      return lines;
    },
  };
};
