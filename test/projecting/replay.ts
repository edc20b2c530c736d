import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Document, Projector } from '../../projections/projector';
import { openLive, provideLive, type LiveGeneration } from '../../src/projecting/live-generations';
import { project } from '../../src/projecting/projection-run';
import { consumer } from '../../src/projecting/consumer';
import type { RebuildOptions, ReplayDependencies } from '../../src/projecting/rebuild';
import { runInto } from '../../src/projecting/projection-run';
import {
  generationName,
  liveOf,
  type DocumentKey,
  type Generation,
  type ReadModels,
} from '../../src/read-models/read-models';
import { rebuild } from '../support/rebuild';
import { linesProjector, type Happened } from './lines';
import {
  created,
  numbered,
  openLog,
  openReadModels,
  streams,
  updated,
  type TestLog,
  type GivenEvent,
} from './harness';

/** What the replay tooling works with, on fresh files, and a history that the test itself records. */
export interface ReplayHarness extends ReplayDependencies {
  readonly log: TestLog;
  readonly folder: string;
  readonly history: Happened[];
  readonly warnings: string[];
  /** Appends to the log, and records it in the history. */
  record(tenantId: string, ...events: readonly GivenEvent[]): Promise<string>;
  /** The generation that queries read. */
  live(projector?: Projector): Promise<LiveGeneration>;
  /** Projects it up to the head, as a server would. */
  catchUp(projector?: Projector): Promise<LiveGeneration>;
  rebuild(projector?: Projector, options?: Partial<RebuildOptions>): ReturnType<typeof rebuild>;
}

export const lines = linesProjector();

export const replayHarness = async (
  hooks?: Parameters<typeof openReadModels>[1],
  program = '1',
): Promise<ReplayHarness> => {
  const log = await openLog();
  const folder = join(log.folder, 'read-models');
  const readModels = await openReadModels(folder, hooks);
  const history: Happened[] = [];
  const warnings: string[] = [];
  const onError = (what: string) => void warnings.push(what);
  const dependencies = { log, streams, readModels, program, onError, consumer: consumer(log, streams) };
  const live = async (projector: Projector = lines): Promise<LiveGeneration> => {
    await provideLive({ projector, readModels, log });
    return { projector, generation: await openLive({ projector, readModels, log }) };
  };
  return {
    ...dependencies,
    folder,
    history,
    warnings,
    live,
    record: async (tenantId, ...events) => {
      const { position: last } = await log.record(streams.tenant(tenantId), ...events);
      events.forEach(({ type, data }, i) => {
        const position = String(Number(last) - events.length + 1 + i).padStart(last.length, '0');
        const keyId = data?.['keyId'] as string | undefined;
        history.push({ tenantId, type, position, bad: false, ...(keyId === undefined ? {} : { keyId }) });
      });
      return last;
    },
    catchUp: async (projector) => {
      const one = await live(projector);
      await projectInto(dependencies, one);
      return one;
    },
    rebuild: (projector = lines, options = {}) =>
      rebuild(dependencies, projector, { acceptDifferences: true, ...options }),
  };
};

export const projectInto = async (
  dependencies: Pick<ReplayDependencies, 'log' | 'streams' | 'program'>,
  { projector, generation }: LiveGeneration,
): Promise<void> => {
  const head = (await dependencies.log.head())?.position;
  if (head === undefined) return;
  await project(
    await runInto(dependencies, projector, generation),
    consumer(dependencies.log, dependencies.streams).upTo(head),
  );
};

/** Changes a document behind the engine's back; undefined removes it. */
export const edit = async (
  generation: Generation,
  key: DocumentKey,
  document: Document | undefined,
): Promise<void> => {
  const { n } = await generation.control();
  if (!(await generation.commit(n, undefined, [{ ...key, document }]))) await edit(generation, key, document);
};

export const headOf = (tenantId: string): DocumentKey => ({ tenantId, collection: 'heads', key: 'all' });

/** A few tenants with a few events each. */
export const someTenants = async ({ record }: ReplayHarness, count = 3): Promise<readonly string[]> => {
  const tenants = Array.from({ length: count }, () => randomUUID());
  for (const tenantId of tenants) await record(tenantId, created(), updated('a'), updated('b'));
  return tenants;
};

/** The generations that exist, by their numbers. */
export const numbersIn = async (readModels: ReadModels): Promise<readonly string[]> =>
  (await readModels.state()).generations.map((id) => numbered(generationName(id))).toSorted();

/** The live generation, by its number. */
export const liveIn = async (readModels: ReadModels, version = 1): Promise<string | undefined> => {
  const live = liveOf(await readModels.state(), { name: 'lines', version });
  return live === undefined ? undefined : numbered(generationName(live));
};
