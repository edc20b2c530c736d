import * as fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import { compose, type ComposedProjector, type Projector } from '../../projections/projector';
import { isEventType, streamKindOf, type StreamKind } from '../../src/domain/events';
import type { EventLog, LoggedEvent } from '../../src/event-log/event-log';
import { streamNames } from '../../src/event-log/streams';
import { tenantProjection } from '../../src/projecting/project-tenants';
import type { ReadModels, ReadModelSet, TenantCommit } from '../../src/read-models/read-models';
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
  /** By default the one that the type belongs in. */
  readonly kind?: StreamKind;
}

const streams = streamNames();

export const positionOf = (index: number): string => String(index + 1).padStart(16, '0');
export const iso = (ms: number): string => new Date(ms).toISOString();

export const loggedOf = (history: readonly HistoryEvent[]): readonly LoggedEvent[] => {
  const revisions = new Map<string, number>();
  return history.map(
    ({ tenantId, type, data, recordedMs, id = randomUUID(), metadata = {}, kind }, index) => {
      const stream = streams[kind ?? (isEventType(type) ? streamKindOf(type) : 'activity')](tenantId);
      const revision = (revisions.get(stream) ?? -1) + 1;
      revisions.set(stream, revision);
      const position = positionOf(index);
      return { id, type, data, metadata, stream, revision, position, recordedAt: iso(recordedMs) };
    },
  );
};

/** What the operator says to set these events aside. */
const settingAside = (events: readonly LoggedEvent[]): readonly LoggedEvent[] =>
  events.map(({ id, stream }, revision) => ({
    id: randomUUID(),
    type: 'EventSetAside',
    data: { eventId: id, eventTenantId: streams.parse(stream)?.tenantId, reason: 'Bad.' },
    metadata: { version: 1 },
    stream: streams.operator(),
    revision,
    position: `operator ${revision}`,
    recordedAt: iso(0),
  }));

/** The stores that the tests of a file share, by the version of their projector. */
const stores = new Map<string, ReadModels>();
afterAll(async () => {
  for (const store of stores.values()) await store.close();
  stores.clear();
});

/** In pieces of these sizes, repeatedly. */
const piecesOf = function* (events: readonly LoggedEvent[], sizes: readonly number[]) {
  for (let from = 0, turn = 0; from < events.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? events.length;
    yield events.slice(from, from + size);
    from += size;
  }
};

export interface ProjectOptions {
  /** How many events are projected at once. By default all. */
  readonly sizes?: readonly number[];
  readonly setAside?: readonly LoggedEvent[];
  /** What is committed of a tenant. */
  readonly onCommit?: (commit: TenantCommit) => void;
}

const ownerOf = ({ stream }: LoggedEvent): string => streams.parse(stream)?.tenantId ?? '';

/** The set, telling of each commit. */
const observed = (set: ReadModelSet, onCommit: (commit: TenantCommit) => void): ReadModelSet => ({
  ...set,
  advance: (before, work, to) =>
    set.advance(
      before,
      async (tenantIds) => {
        const commits = await work(tenantIds);
        commits.forEach(onCommit);
        return commits;
      },
      to,
    ),
});

const projectedInto = async (
  store: ReadModels,
  projector: ComposedProjector,
  events: readonly LoggedEvent[],
  { sizes = [events.length], setAside = [], onCommit = () => undefined }: ProjectOptions = {},
): Promise<ReadModelSet> => {
  const log = [...events, ...settingAside(setAside)];
  const readStream = async function* (stream: string) {
    yield log.filter((event) => event.stream === stream);
  };
  const set = await store.create('log');
  const { progress, commit } = tenantProjection(
    { log: { readStream } as unknown as EventLog, streams, projector, program: '1' },
    observed(set, onCommit),
    { loadsNew: true },
  );
  for (const piece of piecesOf(events, sizes)) {
    const before = await progress([...new Set(piece.map(ownerOf))]);
    const group = Array.from(before, ([tenantId, known]) => ({
      tenantId,
      before: known,
      events: piece.filter((event) => ownerOf(event) === tenantId),
    }));
    await commit(group);
  }
  await set.finish();
  return set;
};

/** A new set, in a store that all tests of a file share. */
export const projected = async (
  projectors: Projector | readonly Projector[],
  events: readonly LoggedEvent[],
  options?: ProjectOptions,
): Promise<ReadModelSet> => {
  const composed = compose([projectors].flat());
  const store = stores.get(composed.version) ?? (await storeUnderTest(composed));
  stores.set(composed.version, store);
  return projectedInto(store, composed, events, options);
};

/** Batch sizes, so that boundaries may fall anywhere. */
export const batchSizes = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 4 });

/** Clocks that stand still, tick, and jump an hour back and forth: differences in milliseconds. */
export const clockSteps = fc.oneof(
  { weight: 6, arbitrary: fc.constant(0) },
  { weight: 3, arbitrary: fc.integer({ min: 1, max: 3 }) },
  { weight: 1, arbitrary: fc.constantFrom(-3_600_000, 3_600_000) },
);
