import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Collection } from '../../../projections/projector';
import { codeOf, fault, messageOf, type Fault } from '../../fault';
import { startThread, type Thread } from '../../sqlite/thread';
import {
  generationName,
  PARKED,
  STREAMS,
  type Generation,
  type GenerationId,
  type ReadModels,
} from '../read-models';
import { openIndexReader } from './index-reader';
import { sqliteGeneration } from './sqlite-generation';
import { generationPath, generationsIn, indexPath, type WriteRequest } from './writer';

const OPEN_MS = 10_000;
const WRITE_MS = 30_000;

/** The indexes of a large generation take their time. Its keys too, but those who fill wait for them in place. */
const INDEX_MS = 1_800_000;

const writingThread = (folder: string): Thread =>
  startThread(join(__dirname, 'writer-thread.js'), { folder });

/** Read models in SQLite files, one per generation, in a folder that several processes may share. */
export const sqliteReadModels = async (
  folder: string,
  startWriter: (folder: string) => Thread = writingThread,
): Promise<ReadModels> => {
  mkdirSync(folder, { recursive: true });
  const writer = startWriter(folder);
  const withinOf = (request: WriteRequest): number =>
    request.do === 'finish' || request.do === 'open' ? INDEX_MS : WRITE_MS;
  const send = <T>(request: WriteRequest, withinMs = withinOf(request)): Promise<T> =>
    writer.call<T>(request, withinMs).catch((error: unknown) => {
      const sentence = `The read models in ${folder} cannot be written: ${messageOf(error)}`;
      throw fault('read_models_unavailable', sentence, { cause: codeOf(error) });
    });
  await send({ do: 'ready' }, OPEN_MS).catch(async (error: unknown) => {
    await writer.close();
    throw error;
  });

  const index = openIndexReader(indexPath(folder));
  const open = new Map<string, ReturnType<typeof sqliteGeneration>>();

  const openGeneration = async (
    id: GenerationId,
    own: readonly Collection[],
    log: string,
    inBulk = false,
  ): Promise<Generation> => {
    const collections = [...own, ...[PARKED, STREAMS].map((name) => ({ name, indexes: {} }))];
    const makeOpen = () =>
      send({ do: 'open', id, collections, log, inBulk }).catch((error: unknown) => {
        if ((error as Fault).more['cause'] !== 'generation_removed') throw error;
        throw fault('generation_removed', `The generation ${generationName(id)} is removed.`);
      });
    await makeOpen();
    const known = open.get(generationName(id));
    if (known !== undefined) {
      if (!inBulk) known.isFilled();
      return known;
    }
    /** A writing thread that had to be started again has nothing open yet. */
    const sendOpen = <T>(request: WriteRequest): Promise<T> =>
      send<T>(request).catch(async (error: unknown) => {
        if ((error as Fault).more['cause'] !== 'not_open') throw error;
        await makeOpen();
        return send<T>(request);
      });
    const generation = sqliteGeneration(generationPath(folder, id), id, collections, inBulk, sendOpen);
    open.set(generationName(id), generation);
    return generation;
  };

  const shut = (id: GenerationId): void => {
    open.get(generationName(id))?.close();
    open.delete(generationName(id));
  };

  return {
    open: openGeneration,
    shut: async (id) => {
      shut(id);
      await send({ do: 'shut', id });
    },
    drop: async (id) => {
      shut(id);
      await send({ do: 'drop', id });
    },
    generations: async () => generationsIn(folder),
    pointer: async (projection, version) => index.pointer(projection, version),
    point: (projection, version, to, believed) => send({ do: 'point', projection, version, to, believed }),
    liveLately: async (projection, version, withinMs) => index.liveLately(projection, version, withinMs),
    markRemoved: (id, unless) => send({ do: 'markRemoved', id, unless }),
    isRemoved: async (id) => index.isRemoved(id),
    nextNumber: (projection, version) => send({ do: 'nextNumber', projection, version }),
    lease: (what, who, forMs, note = '') => send({ do: 'lease', what, holder: who, forMs, note }),
    release: (what, who) => send({ do: 'release', what, holder: who }),
    leaseHolder: async (what) => index.held(what)?.holder,
    leaseNote: async (what) => index.held(what)?.note,
    ask: (what, note = '') => send({ do: 'ask', what, note }),
    asked: async (what) => index.asked(what),
    close: async () => {
      for (const generation of open.values()) generation.close();
      index.close();
      await writer.close();
    },
  };
};
