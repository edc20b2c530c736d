import type { ComponentChild } from 'preact';
import { nameOf, knownName } from './names.js';
import { timeStyle } from './place.js';
import { shortDay } from './time.js';
import { valueText, wordsOf } from './words.js';
import type { Change, LedgerEvent, Log } from './wire.js';

/** A row of the log. */
export interface Row {
  readonly log: Log;
  /** What happened in detail; it may come after the row. */
  readonly event?: LedgerEvent | undefined;
  /** It came while the page was open. */
  readonly isNew?: boolean;
}

/** A piece of a sentence: plain words, what it is about, or a value before and after. */
type Part = ComponentChild;

const name = (text: string): Part => <strong dir="auto">{text}</strong>;
const before = (text: string): Part => <del dir="auto">{text}</del>;
const after = (text: string): Part => <ins dir="auto">{text}</ins>;

const joined = (groups: readonly (readonly Part[])[], between: string): readonly Part[] =>
  groups.filter(({ length }) => length > 0).flatMap((group, i) => (i === 0 ? group : [between, ...group]));

const without = (list: readonly unknown[], others: readonly unknown[]): readonly unknown[] =>
  list.filter((one) => !others.includes(one));

/** What a field was and is; of a list what came and went. */
const changeParts = ({ field, from, to }: Change): readonly Part[] => {
  const what = `${wordsOf(field)} `;
  if (!Array.isArray(from) || !Array.isArray(to))
    return [what, before(valueText(from, field)), ' ', after(valueText(to, field))];
  const gained = without(to, from).map((one) => [after(`+${valueText(one)}`)]);
  const lost = without(from, to).map((one) => [before(`−${valueText(one)}`)]);
  return [what, ...joined([...gained, ...lost], ' ')];
};

const changed = (changes: readonly Change[]): readonly Part[] => joined(changes.map(changeParts), ', ');

/** The message of the row without what is beside it: `used 12 times, refused 1 time (lacks tenant:update)`. */
const usesOf = ({ data: { date = '' }, recorded_at, log }: LedgerEvent): string =>
  (log?.message ?? '')
    .replace(/^Key /, '')
    .replace(` on ${date}`, recorded_at.startsWith(date) ? '' : ` on ${shortDay(date, 'utc')}`);

/** What came of a key, after the Application that it is of. */
const keyParts = (event: LedgerEvent): readonly Part[] => {
  const { type, data, changes = [] } = event;
  const { applicationId = '', keyId = '', expiresAt } = data;
  const known = data.name ?? knownName('key', keyId);
  const what = (): readonly Part[] => {
    if (type === 'KeyUsed') return [usesOf(event)];
    if (type === 'KeyRevoked') return ['revoked'];
    if (type === 'KeyExpirySet') return changed(changes);
    return [`added${expiresAt === undefined ? '' : `, expires ${shortDay(expiresAt, timeStyle.value)}`}`];
  };
  const key: readonly Part[] = known === undefined ? ['key '] : ['key ', name(known), ' '];
  return [name(nameOf('application', applicationId)), ' · ', ...key, ...what()];
};

/** The entity and the change, with names instead of ids. Undefined: the message of the row says it. */
const partsOf = (event: LedgerEvent): readonly Part[] | undefined => {
  const { type, data, changes = [] } = event;
  const { applicationId = '', applicationType = '', permissions = [] } = data;
  const application = name(data.name ?? nameOf('application', applicationId));
  if (type.startsWith('Key')) return keyParts(event);
  switch (type) {
    case 'ApplicationCreated':
      return [
        application,
        ` created, ${applicationType}, with ${permissions.join(', ') || 'no permissions'}`,
      ];
    case 'ApplicationDeleted':
      return [name(valueText(changes.find(({ field }) => field === 'name')?.from, 'name')), ' deleted'];
    case 'ApplicationUpdated':
      return changes.length === 0 ? undefined : [application, ' · ', ...changed(changes)];
    case 'TenantCreated':
      return [name(data.name ?? ''), ' created'];
    default:
      return type.startsWith('Tenant') && type !== 'TenantDeleted' && changes.length > 0
        ? [name(data.name ?? nameOf('tenant', '')), ' · ', ...changed(changes)]
        : undefined;
  }
};

/** What others report is told in their words, after what it is about: it is never taken for a decision. */
export const Sentence = ({ row: { log, event } }: { readonly row: Row }) => {
  const told = event === undefined || log.source === 'fact' ? undefined : partsOf(event);
  const { entity_type: type, entity_id: id } = log;
  const isKnown = type === 'key' || knownName(type, id) !== undefined;
  const subject = isKnown ? name(nameOf(type, id)) : <code>{nameOf(type, id)}</code>;
  return <>{told ?? [subject, ' · ', log.message]}</>;
};

const LATER_MS = 60_000;

/** When it happened, if that was told and is not when it was recorded. */
export const happenedAt = ({ log, event }: Row): string | undefined => {
  const at = log.occurred_at ?? event?.data.occurredAt ?? event?.metadata.at;
  const isLater =
    log.source !== 'access' &&
    at !== undefined &&
    Math.abs(Date.parse(log.created_at) - Date.parse(at)) >= LATER_MS;
  return isLater ? at : undefined;
};
