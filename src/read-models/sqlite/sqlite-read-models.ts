import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Collection } from '../../../projections/projector';
import { monotonicMs } from '../../clock';
import { codeOf, fault, messageOf, type Fault } from '../../fault';
import { isDamagedFile } from '../../sqlite/database';
import { setFileAside } from '../../sqlite/disposable-file';
import { startThread, type Thread } from '../../sqlite/thread';
import { isDamage } from '../damage';
import {
  COMMON_COLLECTIONS,
  generationName,
  type GenerationId,
  type ReadModels,
  type Registry,
} from '../read-models';
import { checkIndex, openRegistryReader, type RegistryReader } from './registry-reader';
import type { RegistryWrite } from './registry-writer';
import { peekAt } from './peek';
import { sqliteBuild } from './sqlite-build';
import { sqliteGeneration, type GenerationFile, type Send, type SqliteGeneration } from './sqlite-generation';
import { generationPath, generationsIn, indexPath, type WriteRequest } from './writer';

const OPEN_MS = 10_000;
const WRITE_MS = 30_000;

/**
 * Building the indexes of a large generation takes long. So do its keys, but builds wait for those in their own thread.
 */
const INDEX_MS = 1_800_000;

/** A server itself writes only at startup and at a switch; its workers have writers of their own. */
const WRITER_IDLE_MS = 1_000;

const writerThread = (folder: string): Thread =>
  startThread(join(__dirname, 'writer-thread.js'), { folder }, { idleMs: WRITER_IDLE_MS });

/** 64 MB, a fraction of the memory of a projecting thread. */
const MAX_COMMIT_BYTES = 67_108_864;

type Report = (what: string, error: unknown) => void;

export interface SqliteOptions {
  readonly startWriter?: (folder: string) => Thread;
  readonly maxCommitBytes?: number;
  /** Called when a damaged index was replaced. */
  readonly report?: Report;
  /** How long a generation that is neither live nor previous stays open without use. */
  readonly idleMs?: number;
}

/** Sends requests to the writer, and turns its failures into faults. */
const sender = (folder: string, writer: Thread) => {
  const withinOf = (request: WriteRequest): number =>
    request.do === 'finish' || request.do === 'open' ? INDEX_MS : WRITE_MS;
  return <T>(request: WriteRequest, withinMs = withinOf(request)): Promise<T> =>
    writer.call<T>(request, withinMs).catch((error: unknown) => {
      if (codeOf(error) === 'generation_removed' || isDamage(error)) throw error;
      const message = `The read models in ${folder} cannot be written: ${messageOf(error)}`;
      throw fault('read_models_unavailable', message, { cause: codeOf(error) });
    });
};

/** The generations that are open in this process. */
const openGenerations = (folder: string, send: Send, maxCommitBytes: number) => {
  const open = new Map<string, SqliteGeneration>();
  const marked = new Set<string>();

  /** Once. If it fails, the next process that finds the damage does it. */
  const mark: GenerationFile['mark'] = (id, why) => {
    if (marked.has(generationName(id))) return;
    marked.add(generationName(id));
    send({ do: 'markDamaged', args: [id, why] }).catch(() => marked.delete(generationName(id)));
  };

  const handle = async (
    id: GenerationId,
    own: readonly Collection[],
    log: string,
    isBuild: boolean,
  ): Promise<{ generation: SqliteGeneration; sendOpen: Send }> => {
    const collections = [...own, ...COMMON_COLLECTIONS];
    const openWriter = () => send({ do: 'open', id, collections, log, isBuild });
    /** A restarted writer thread has nothing open yet. */
    const sendOpen: Send = (request) =>
      send<never>(request).catch(async (error: unknown) => {
        if ((error as Fault).more['cause'] !== 'not_open') throw error;
        await openWriter();
        return send(request);
      });
    await openWriter();
    const known = open.get(generationName(id));
    const path = generationPath(folder, id);
    const generation = known ?? sqliteGeneration({ id, path, mark }, collections, maxCommitBytes, sendOpen);
    open.set(generationName(id), generation);
    return { generation, sendOpen };
  };

  const close = (id: GenerationId): void => {
    open.get(generationName(id))?.close();
    open.delete(generationName(id));
  };

  return { handle, close, all: () => [...open.values()] };
};

const LOOK_MS = 100;

const IF_OF_ANOTHER_LOG =
  'Check EVENTSTORE_URL, STREAM_PREFIX and DATA_DIR: they name the log and the folder together. If this log is meant, move the folder of the read models away and start again: they are rebuilt from the log.';

/** Running queries may use a generation for a while after a switch. */
const IDLE_MS = 10_000;

/** How soon a damaged file is noticed even if no query finds it out. */
const LOOK_AFTER_MS = 2_000;

/**
 * Closes generations that are neither live nor previous and no longer used (the next use reopens them), and looks whether
 * the others are damaged.
 */
const lookAfter = (
  all: readonly SqliteGeneration[],
  idleMs: number,
  registry: RegistryReader,
  send: Send,
): void => {
  for (const { id, idleSince, look, close } of all) {
    const pointer = registry.pointer(id.projection, id.version);
    const isPointedAt = pointer?.live === id.generation || pointer?.previous === id.generation;
    if (isPointedAt && registry.damageOf(id) === undefined) look();
    if (isPointedAt || monotonicMs() - idleSince() < idleMs) continue;
    close();
    send({ do: 'close', id }).catch(() => undefined);
  }
};

const registryOf = (registry: RegistryReader, send: Send, folder: string) => {
  const writing =
    <W extends RegistryWrite>(write: W) =>
    (...args: Parameters<Registry[W]>): Promise<Awaited<ReturnType<Registry[W]>>> =>
      send({ do: write, args });
  return {
    generations: async () => generationsIn(folder),
    pointersToken: registry.changes,
    pointer: async (projection, version) => registry.pointer(projection, version),
    point: writing('point'),
    liveLately: async (projection, version, withinMs) => registry.liveLately(projection, version, withinMs),
    markRemoved: writing('markRemoved'),
    isRemoved: async (id) => registry.isRemoved(id),
    nextNumber: writing('nextNumber'),
    damageOf: async (id) => registry.damageOf(id),
    lease: writing('lease'),
    release: writing('release'),
    leaseHolder: async (what) => registry.held(what)?.holder,
    leaseNote: async (what) => registry.held(what)?.note,
    requestRetry: writing('requestRetry'),
    retryRequests: async () => registry.retryRequests(),
  } satisfies Omit<Registry, 'drop'>;
};

/**
 * Without the index it is not known which generations are live, so all are built again. Before there is any, another
 * process may be creating the index right now.
 */
const replaceIndexIfDamaged = (folder: string, report: Report): void => {
  const path = indexPath(folder);
  if (!existsSync(path) || generationsIn(folder).length === 0) return;
  try {
    checkIndex(path);
  } catch (error) {
    if (!isDamagedFile(error, path)) throw error;
    const aside = setFileAside(path);
    const what = `The index of the read models ${path} was damaged: it is ${aside} now, and another is created.`;
    report(what, error);
  }
};

/** Read models in SQLite files, one per generation, in a folder that several processes may share. */
export const sqliteReadModels = async (
  folder: string,
  {
    startWriter = writerThread,
    maxCommitBytes = MAX_COMMIT_BYTES,
    idleMs = IDLE_MS,
    report = () => undefined,
  }: SqliteOptions = {},
): Promise<ReadModels> => {
  mkdirSync(folder, { recursive: true });
  replaceIndexIfDamaged(folder, report);
  const writer = startWriter(folder);
  const send = sender(folder, writer);
  await send({ do: 'ready' }, OPEN_MS).catch(async (error: unknown) => {
    await writer.close();
    throw error;
  });
  const registry = openRegistryReader(indexPath(folder));
  const { handle, close, all } = openGenerations(folder, send, maxCommitBytes);
  const looking = setInterval(
    () => {
      try {
        lookAfter(all(), idleMs, registry, send);
      } catch {
        // The store cannot be read right now, or a generation is damaged and marked now. The next run tries again.
      }
    },
    Math.min(idleMs / 2, LOOK_AFTER_MS),
  ).unref();
  return {
    ...registryOf(registry, send, folder),
    open: async (id, collections, log) => (await handle(id, collections, log, false)).generation,
    build: async (id, collections, log) => {
      const { generation, sendOpen } = await handle(id, collections, log, true);
      return sqliteBuild(generation, sendOpen);
    },
    ifOfAnotherLog: IF_OF_ANOTHER_LOG,
    lookMs: LOOK_MS,
    peek: async (id) => peekAt(generationPath(folder, id), id),
    drop: async (id) => {
      close(id);
      await send({ do: 'drop', id });
    },
    close: async () => {
      clearInterval(looking);
      for (const generation of all()) generation.close();
      registry.close();
      await writer.close();
    },
  };
};
