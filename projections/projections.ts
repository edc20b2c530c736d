import { applications } from './applications';
import type { Change, Collection, Projector, SetAsideEvent } from './projector';
import { logs } from './logs';
import { tenants } from './tenants';
import { usage } from './usage';
import type { EventType, Recorded } from '../src/domain/events';

/** Everything that is derived from the log. */
export const projections: readonly Projector[] = [tenants, applications, usage, logs];

/** All projectors as the one that runs. Their collections have different names. */
export interface ComposedProjector {
  /** The layout of the sets, and the names and versions of all projectors. Part of the names of files. */
  readonly version: string;
  readonly collections: readonly Collection[];
  /** The changes of all projectors for an event, in their order. */
  readonly changesOf: (event: Recorded) => readonly Change[];
  readonly onSetAside: (event: SetAsideEvent) => readonly Change[];
}

/** Raise it when stores keep sets in another way. */
const LAYOUT = 1;

type AnyReducer = (event: Recorded) => readonly Change[];

const versionOf = (projectors: readonly Projector[]): string =>
  [LAYOUT, ...projectors.map(({ name, version }) => `${name}${version}`)].join('-');

export const compose = (projectors: readonly Projector[]): ComposedProjector => {
  const reducers = new Map<EventType, readonly AnyReducer[]>();
  for (const { on } of projectors)
    for (const [type, reducer] of Object.entries(on) as [EventType, AnyReducer][])
      reducers.set(type, [...(reducers.get(type) ?? []), reducer]);
  return {
    version: versionOf(projectors),
    collections: projectors.flatMap(({ collections }) => collections),
    changesOf: (event) => (reducers.get(event.type) ?? []).flatMap((reducer) => reducer(event)),
    onSetAside: (event) => projectors.flatMap(({ onSetAside }) => onSetAside?.(event) ?? []),
  };
};
