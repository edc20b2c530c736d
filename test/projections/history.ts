import * as fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import { type Projector, compose, type ComposedProjector } from '../../projections/projector';
import { isFactType } from '../../src/domain/events';
import type { LoggedEvent } from '../../src/event-log/event-log';
import { streamNames } from '../../src/event-log/streams';
import { projection, type ReadAfter } from '../../src/projecting/project';
import type { ReadModels, ReadModelSet } from '../../src/read-models/read-models';
import { storeUnderTest } from '../support/store-under-test';

/** Histories of facts and other events as stored in the log, projected by the real engine in batches of any size. */
export interface HistoryEvent {
  readonly tenantId: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** Milliseconds on the clock of the log, which may jump. */
  readonly recordedMs: number;
  readonly id?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

const streams = streamNames();

export const positionOf = (index: number): string => String(index + 1).padStart(16, '0');
export const iso = (ms: number): string => new Date(ms).toISOString();

export const loggedOf = (history: readonly HistoryEvent[]): readonly LoggedEvent[] => {
  const revisions = new Map<string, number>();
  return history.map(({ tenantId, type, data, recordedMs, id = randomUUID(), metadata = {} }, index) => {
    const stream = isFactType(type) ? streams.activity(tenantId) : streams.tenant(tenantId);
    const revision = (revisions.get(stream) ?? -1) + 1;
    revisions.set(stream, revision);
    const position = positionOf(index);
    return { id, type, data, metadata, stream, revision, position, recordedAt: iso(recordedMs) };
  });
};

/** The stores that the tests of a file share, by the version of their projector. */
const stores = new Map<string, ReadModels>();
afterAll(async () => {
  for (const store of stores.values()) await store.close();
  stores.clear();
});

/** The events in pieces of these sizes, repeatedly, wherever it is read from. */
const inPieces = (events: readonly LoggedEvent[], sizes: readonly number[]): ReadAfter => {
  let turn = 0;
  return async (after = '') => {
    const size = sizes[turn++ % sizes.length] ?? events.length;
    const from = events.findIndex(({ position }) => position > after);
    return from < 0 ? [] : events.slice(from, from + size);
  };
};

/** A set of one projector after these events. */
export const projectedInto = async (
  store: ReadModels,
  projector: ComposedProjector,
  events: readonly LoggedEvent[],
  sizes: readonly number[] = [events.length],
): Promise<ReadModelSet> => {
  const set = await store.create('log');
  const folding = {
    projector,
    streams,
    program: '1',
    now: () => iso(0),
    setAside: { event: () => false, gapBefore: () => false },
  };
  await projection(set, inPieces(events, sizes), folding).toEnd();
  await set.finish();
  return set;
};

/** A new set, in a store that all tests of a file share. */
export const projected = async (
  projectors: Projector | readonly Projector[],
  events: readonly LoggedEvent[],
  sizes?: readonly number[],
): Promise<ReadModelSet> => {
  const composed = compose([projectors].flat());
  const store = stores.get(composed.version) ?? (await storeUnderTest(composed));
  stores.set(composed.version, store);
  return projectedInto(store, composed, events, sizes);
};

/** Batch sizes, so that boundaries may fall anywhere. */
export const batchSizes = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 4 });

/** Clocks that stand still, tick, and jump an hour back and forth: differences in milliseconds. */
export const clockSteps = fc.oneof(
  { weight: 6, arbitrary: fc.constant(0) },
  { weight: 3, arbitrary: fc.integer({ min: 1, max: 3 }) },
  { weight: 1, arbitrary: fc.constantFrom(-3_600_000, 3_600_000) },
);
