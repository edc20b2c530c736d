import type { EventType, OperatorEvent } from './events';

/** Converts data of version n to version n + 1. */
type Upcaster = (data: Readonly<Record<string, unknown>>) => Record<string, unknown>;

type VersionedType = EventType | OperatorEvent['type'];

type Upcasters = Partial<Record<VersionedType, readonly Upcaster[]>>;

/** This is the only place that knows old versions of events. So far every type has one version. */
const upcasters: Upcasters = {};

export const currentVersion = (type: VersionedType): number => (upcasters[type]?.length ?? 0) + 1;

export const upcast = (
  type: EventType,
  version: number,
  data: Readonly<Record<string, unknown>>,
  table = upcasters,
): Readonly<Record<string, unknown>> =>
  table[type]?.slice(version - 1).reduce((current, next) => next(current), data) ?? data;
