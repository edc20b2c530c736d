import { createHash } from 'node:crypto';
import type { Change, Collection, Projector, SetAsideEvent } from '../../projections/projector';
import type { EventType, Recorded } from '../domain/events';
import { COMMON_COLLECTIONS } from '../read-models/read-models';

/** All projectors as the one that runs. Their collections have different names. */
export interface ComposedProjector {
  /** Identifies the layout of the sets, and the names and versions of all projectors. */
  readonly version: string;
  /** Everything that a set holds, including the collections that every set has. */
  readonly collections: readonly Collection[];
  /** The changes of all projectors for an event, in their order. */
  readonly changesOf: (event: Recorded) => readonly Change[];
  readonly onSetAside: (event: SetAsideEvent) => readonly Change[];
}

/** Raise it when stores keep sets, or their common collections, in another way. */
const LAYOUT = 1;

type AnyReducer = (event: Recorded) => readonly Change[];

const versionOf = (projectors: readonly Projector[]): string => {
  const names = projectors.map(({ name, version }) => [name, version]);
  return createHash('sha256')
    .update(JSON.stringify([LAYOUT, ...names]))
    .digest('hex')
    .slice(0, 12);
};

export const compose = (projectors: readonly Projector[]): ComposedProjector => {
  const reducers = new Map<EventType, readonly AnyReducer[]>();
  for (const { on } of projectors)
    for (const [type, reducer] of Object.entries(on) as [EventType, AnyReducer][])
      reducers.set(type, [...(reducers.get(type) ?? []), reducer]);
  return {
    version: versionOf(projectors),
    collections: [...projectors.flatMap(({ collections }) => collections), ...COMMON_COLLECTIONS],
    changesOf: (event) => (reducers.get(event.type) ?? []).flatMap((reducer) => reducer(event)),
    onSetAside: (event) => projectors.flatMap(({ onSetAside }) => onSetAside?.(event) ?? []),
  };
};
