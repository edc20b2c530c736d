import { currentVersion } from './event-schemas';
import type { EventType } from './events';

/** Lifts the data of version n to version n + 1. Every old shape of every event is lifted here and nowhere else. */
type Lift = (data: Readonly<Record<string, unknown>>) => Record<string, unknown>;

/** What came later is optional. */
const asItIs: Lift = (data) => ({ ...data });

const lifts: Partial<Record<EventType, readonly Lift[]>> = { KeyAdded: [asItIs] };

export const upcast = (
  type: EventType,
  version: number,
  data: Readonly<Record<string, unknown>>,
  table: Partial<Record<EventType, readonly Lift[]>> = lifts,
): Readonly<Record<string, unknown>> =>
  (table[type] ?? []).slice(version - 1).reduce((lifted, lift) => lift(lifted), data);

/** Every type needs one lift fewer than it has versions; a test asks this of the table. */
export const missingLifts = (types: readonly EventType[]): readonly EventType[] =>
  types.filter((type) => (lifts[type]?.length ?? 0) !== currentVersion(type) - 1);
