import { nameOf } from './names.js';
import type { Row } from './log-rows.js';
import type { Change, LedgerEvent } from './wire.js';

export const valueText = (value: unknown): string => {
  if (value === null || value === undefined) return 'none';
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value);
};

const without = (list: readonly unknown[], others: readonly unknown[]): readonly unknown[] =>
  list.filter((one) => !others.includes(one));

/** `settings.deduplicate_tokens false → true`; of a list what came and went. */
const changeText = ({ field, from, to }: Change): string => {
  if (!Array.isArray(from) || !Array.isArray(to)) return `${field} ${valueText(from)} → ${valueText(to)}`;
  const gained = without(to, from).map((one) => `+${String(one)}`);
  return `${field} ${[...gained, ...without(from, to).map((one) => `−${String(one)}`)].join(' ')}`;
};

/** What came of a key or an Application, with names instead of ids. */
const sentenceOf = ({ type, data, changes = [] }: LedgerEvent): string | undefined => {
  const { applicationId = '', keyId = '', name, permissions = [], expiresAt } = data;
  const application = nameOf('application', applicationId);
  const key = `key ‘${name ?? nameOf('key', keyId)}’`;
  switch (type) {
    case 'KeyAdded':
      return `${key} added to ${application}${expiresAt === undefined ? '' : `, until ${expiresAt}`}`;
    case 'KeyRevoked':
      return `${key} of ${application} revoked`;
    case 'KeyExpirySet':
      return `${key} of ${application}: ${changes.map(changeText).join(', ')}`;
    case 'ApplicationCreated':
      return `Application created with ${permissions.length === 0 ? 'no permissions' : permissions.join(', ')}`;
    case 'ApplicationDeleted':
      return undefined;
    default:
      return changes.length === 0 ? undefined : changes.map(changeText).join(', ');
  }
};

export const whatHappened = ({ log, event }: Row): string =>
  (event === undefined ? undefined : sentenceOf(event)) ?? log.message;

const LATER_MS = 60_000;

/** When it happened, if that was told and is not when it was recorded. */
export const happenedAt = ({ data, metadata, recorded_at }: LedgerEvent): string | undefined => {
  const at = data.occurredAt ?? metadata.at;
  const isLater = at !== undefined && Math.abs(Date.parse(recorded_at) - Date.parse(at)) >= LATER_MS;
  return isLater ? at : undefined;
};
