import { currentVersion } from './event-schemas';
import type { EventType } from './events';

/** Converts data of version n to version n + 1. This is the only place that knows old versions of events. */
type Upcaster = (data: Readonly<Record<string, unknown>>) => Record<string, unknown>;

/** The new version only adds optional properties. */
const unchanged: Upcaster = (data) => ({ ...data });

const upcasters: Partial<Record<EventType, readonly Upcaster[]>> = { KeyAdded: [unchanged] };

export const upcast = (
  type: EventType,
  version: number,
  data: Readonly<Record<string, unknown>>,
  table: Partial<Record<EventType, readonly Upcaster[]>> = upcasters,
): Readonly<Record<string, unknown>> =>
  (table[type] ?? []).slice(version - 1).reduce((current, next) => next(current), data);

/** Every type needs one upcaster fewer than it has versions. For a test. */
export const missingUpcasters = (types: readonly EventType[]): readonly EventType[] =>
  types.filter((type) => (upcasters[type]?.length ?? 0) !== currentVersion(type) - 1);
