import { nameOf } from './names.js';
import { timeStyle } from './place.js';
import { shortDay } from './time.js';
import { valueText, wordsOf } from './words.js';
import type { Row } from './log-rows.js';
import type { Change, LedgerEvent } from './wire.js';

const without = (list: readonly unknown[], others: readonly unknown[]): readonly unknown[] =>
  list.filter((one) => !others.includes(one));

/** `deduplicate tokens no → yes`; of a list what came and went. */
const changeText = ({ field, from, to }: Change): string => {
  if (!Array.isArray(from) || !Array.isArray(to))
    return `${wordsOf(field)} ${valueText(from, field)} → ${valueText(to, field)}`;
  const gained = without(to, from).map((one) => `+${String(one)}`);
  return `${wordsOf(field)} ${[...gained, ...without(from, to).map((one) => `−${String(one)}`)].join(' ')}`;
};

/** What came of a key or an Application, with names instead of ids. */
const sentenceOf = ({ type, data, changes = [] }: LedgerEvent): string | undefined => {
  const { applicationId = '', keyId = '', name, permissions = [], expiresAt } = data;
  const application = nameOf('application', applicationId);
  const key = `key ‘${name ?? nameOf('key', keyId)}’`;
  switch (type) {
    case 'KeyAdded':
      return `${key} added to ${application}${expiresAt === undefined ? '' : `, expires ${shortDay(expiresAt, timeStyle.value)}`}`;
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
