import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Collection } from '../../../projections/projector';
import { codeOf, fault, messageOf, type Fault } from '../../fault';
import { openForReading } from '../../sqlite/database';
import { startThread, type Thread } from '../../sqlite/thread';
import {
  generationName,
  PARKED,
  STREAMS,
  type Asked,
  type Generation,
  type GenerationId,
  type ReadModels,
} from '../read-models';
import { isGone } from './lease-holder';
import { sqliteGeneration } from './sqlite-generation';
import { generationPath, indexPath, type WriteRequest } from './writer';

const OPEN_MS = 10_000;
const WRITE_MS = 30_000;

/** The indexes of a large generation take their time. Its keys too, but those who fill wait for them in place. */
const INDEX_MS = 1_800_000;
const FILE = /^([a-z_]+)_v([0-9]+)_([0-9]+)\.db$/;

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

  const index = openForReading(indexPath(folder));
  const pointer = index.prepare('SELECT live, previous FROM pointers WHERE projection = ? AND version = ?');
  const holder = index.prepare('SELECT holder, note FROM leases WHERE what = ? AND until >= ?');
  const askings = index.prepare('SELECT times, note FROM askings WHERE what = ?');
  const open = new Map<string, ReturnType<typeof sqliteGeneration>>();

  const openGeneration = async (
    id: GenerationId,
    own: readonly Collection[],
    log: string,
    inBulk = false,
  ): Promise<Generation> => {
    const collections = [...own, ...[PARKED, STREAMS].map((name) => ({ name, indexes: {} }))];
    const makeOpen = () => send({ do: 'open', id, collections, log, inBulk });
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

  const heldNow = (what: string): { holder: string; note: string } | undefined => {
    const held = holder.get(what, Date.now()) as { holder: string; note: string } | undefined;
    return held === undefined || isGone(held.holder) ? undefined : held;
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
    generations: async () =>
      readdirSync(folder).flatMap((file) => {
        const match = FILE.exec(file);
        if (match === null) return [];
        return [{ projection: match[1] as string, version: Number(match[2]), generation: Number(match[3]) }];
      }),
    pointer: async (projection, version) => {
      const row = pointer.get(projection, version) as { live: number; previous: number | null } | undefined;
      if (row === undefined) return undefined;
      return { live: row.live, ...(row.previous === null ? {} : { previous: row.previous }) };
    },
    point: (projection, version, to, believed) => send({ do: 'point', projection, version, to, believed }),
    lease: (what, who, forMs, note = '') => send({ do: 'lease', what, holder: who, forMs, note }),
    release: (what, who) => send({ do: 'release', what, holder: who }),
    leaseHolder: async (what) => heldNow(what)?.holder,
    leaseNote: async (what) => heldNow(what)?.note,
    ask: (what, note = '') => send({ do: 'ask', what, note }),
    asked: async (what) => (askings.get(what) as Asked | undefined) ?? { times: 0, note: '' },
    close: async () => {
      for (const generation of open.values()) generation.close();
      index.close();
      await writer.close();
    },
  };
};
