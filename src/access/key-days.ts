import { findKeyDays, keyDayView, type KeyDayView } from '../../projections/key-days';
import type { Reader } from '../../projections/projector';
import { DAY_MS } from '../async/clock';
import type { KeyUses } from '../key-uses/key-uses';

const SHOWN_DAYS = 30;

/** The date some days before a moment, in UTC. */
const dateBefore = (at: string, days: number): string =>
  new Date(Date.parse(at) - days * DAY_MS).toISOString().slice(0, 10);

/**
 * What a key was used for on each of the last 30 days, newest first: from the log as far as the read model `logs` shows
 * it, else from what is stored until it is in the log.
 */
export const lastDaysOf = async (
  { logs, keyUses }: { readonly logs: Reader; readonly keyUses: Pick<KeyUses, 'days'> },
  tenantId: string,
  keyId: string,
  at: string,
): Promise<readonly KeyDayView[]> => {
  const dates = Array.from({ length: SHOWN_DAYS }, (_, days) => dateBefore(at, days));
  // In this order, since what is in the log is removed from where it was stored.
  const stored = (await keyUses.days(tenantId, keyId, dates)).map(keyDayView);
  const logged = await findKeyDays(logs, tenantId, keyId, dates);
  const byDate = new Map([...stored, ...logged].map((day) => [day.date, day]));
  return dates.flatMap((date) => byDate.get(date) ?? []);
};
