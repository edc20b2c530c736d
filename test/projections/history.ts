import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import type { Projector } from '../../projections/projector';
import { isFactType } from '../../src/domain/facts';
import type { EventLog, LoggedEvent } from '../../src/event-log/event-log';
import { streamNames } from '../../src/event-log/streams';
import { batchOf } from '../../src/projecting/batch';
import { project } from '../../src/projecting/projection-run';
import type { Generation, Reader, ReadModels } from '../../src/read-models/read-models';
import { storeUnderTest } from '../support/store-under-test';
import { createAndOpen } from '../support/generations';

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

let readModels: ReadModels | undefined;
let number = 0;
afterAll(async () => {
  await readModels?.close();
  readModels = undefined;
});

/** The events split into batches of these sizes, repeatedly. */
function* cut(events: readonly LoggedEvent[], sizes: readonly number[]): Generator<readonly LoggedEvent[]> {
  for (let from = 0, turn = 0; from < events.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? events.length;
    yield events.slice(from, from + size);
    from += size;
  }
}

/** A generation of a projection after these events. */
export const projectedInto = async (
  store: ReadModels,
  generationNumber: number,
  projector: Projector,
  events: readonly LoggedEvent[],
  sizes: readonly number[] = [events.length],
): Promise<Generation> => {
  const id = { projection: projector.name, version: projector.version, generation: `n${generationNumber}` };
  const generation = await createAndOpen(store, id, projector.collections, 'log');
  const run = {
    projector,
    generation,
    log: undefined as unknown as EventLog,
    streams,
    program: '1',
    now: () => iso(0),
    setAside: { event: () => false, gapBefore: () => false },
    moved: () => undefined,
  };
  await project(run, async function* () {
    for (const batch of cut(events, sizes)) yield batchOf(batch, streams);
  });
  return generation;
};

/** A new generation, in a store that all tests of a file share. */
export const projected = async (
  projector: Projector,
  events: readonly LoggedEvent[],
  sizes?: readonly number[],
): Promise<Reader> => {
  readModels ??= await storeUnderTest(undefined, {});
  number += 1;
  return (await projectedInto(readModels, number, projector, events, sizes)).reader;
};

/** Batch sizes, so that boundaries may fall anywhere. */
export const batchSizes = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 4 });

/** Clocks that stand still, tick, and jump an hour back and forth: differences in milliseconds. */
export const clockSteps = fc.oneof(
  { weight: 6, arbitrary: fc.constant(0) },
  { weight: 3, arbitrary: fc.integer({ min: 1, max: 3 }) },
  { weight: 1, arbitrary: fc.constantFrom(-3_600_000, 3_600_000) },
);
