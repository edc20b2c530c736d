import type { KeyUseEvent } from '../src/domain/key-use';
import { change, type Change, type Reader } from './projector';

/** What a key was used for on one UTC day. */
export interface KeyDayView {
  readonly date: string;
  readonly operations: Readonly<Record<string, number>>;
  readonly failed: number;
  readonly events_given_out: number;
  readonly first_used_at: string;
  readonly last_used_at: string;
}

/** The days of one key in one month. */
interface MonthDocument {
  readonly days: Readonly<Record<string, KeyDayView>>;
}

const COLLECTION = 'heads';
const monthOf = (keyId: string, date: string): string => `uses ${keyId} ${date.slice(0, 7)}`;

export const keyDayView = (data: Omit<KeyUseEvent['data'], 'applicationId' | 'keyId'>): KeyDayView => ({
  date: data.date,
  operations: data.operations,
  failed: data.failed,
  events_given_out: data.eventsGivenOut,
  first_used_at: data.firstAt,
  last_used_at: data.lastAt,
});

/** In the read model `logs`, beside the heads of its lines. */
export const keyUsed = ({ data }: KeyUseEvent): Change =>
  change<MonthDocument>(COLLECTION, monthOf(data.keyId, data.date), (month) => ({
    days: { ...month?.days, [data.date]: keyDayView(data) },
  }));

/** Those of these days on which the key was used, according to the log. */
export const findKeyDays = async (
  reader: Reader,
  tenantId: string,
  keyId: string,
  dates: readonly string[],
): Promise<readonly KeyDayView[]> => {
  const keys = [...new Set(dates.map((date) => monthOf(keyId, date)))];
  const months = await Promise.all(keys.map((key) => reader.get(tenantId, COLLECTION, key)));
  const days = Object.assign({}, ...months.map((month) => (month as MonthDocument | undefined)?.days));
  return dates.flatMap((date) => (days as MonthDocument['days'])[date] ?? []);
};
