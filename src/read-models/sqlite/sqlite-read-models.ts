import { existsSync } from 'node:fs';
import type { Collection } from '../../../projections/projector';
import { answerInPlace, type Thread } from '../../async/thread';
import { codeOf, fault, messageOf } from '../../fault';
import { isDamagedFile } from '../../sqlite/database';
import { setFileAside } from '../../sqlite/disposable-file';
import { isDamage } from '../damage';
import { COMMON_COLLECTIONS, generationName, type GenerationId, type ReadModels } from '../read-models';
import { checkRegistry, registryReader, type RegistryReader } from './registry-reader';
import { LEASE_MS } from './registry-writer';
import { sqliteGeneration, type GenerationFile, type SqliteGeneration } from './sqlite-generation';
import { generationPath, registryPath, writing, type Send, type WriteRequest } from './writer';

const WRITE_MS = 30_000;

/** Creating the indexes of a large generation takes long. */
const WITHIN_MS: Readonly<Record<string, number>> = { finish: 1_800_000, open: 1_800_000 };

/** 64 MB, a fraction of the memory of a projecting thread. */
const MAX_COMMIT_BYTES = 67_108_864;

export interface SqliteOptions {
  /** What writes to the files. By default this thread does. */
  readonly writer?: (folder: string) => Thread;
  readonly maxCommitBytes?: number;
  /** How soon a damaged file is noticed even if no query finds it out. */
  readonly lookMs?: number;
}

/** Sends requests to the writer, and turns its failures into faults. */
const sender =
  (folder: string, writer: Thread): Send =>
  (write, ...args) =>
    writer
      .call<never>({ do: write, args } satisfies WriteRequest, WITHIN_MS[write] ?? WRITE_MS)
      .catch((error: unknown) => {
        if (codeOf(error) === 'generation_removed' || isDamage(error)) throw error;
        const message = `The read models in ${folder} cannot be written: ${messageOf(error)}`;
        throw fault('read_models_unavailable', message, { cause: codeOf(error) });
      });

/** The generations that are open in this process. */
const openGenerations = (folder: string, send: Send, maxCommitBytes: number) => {
  const open = new Map<string, SqliteGeneration>();
  const marked = new Set<string>();

  /** Once. If it fails, the next process that finds the damage does it. */
  const mark: GenerationFile['mark'] = (id, why) => {
    if (marked.has(generationName(id))) return;
    marked.add(generationName(id));
    send('markDamaged', id, why).catch(() => marked.delete(generationName(id)));
  };

  const onShort: GenerationFile['onShort'] = (id) => void send('checkSize', id).catch(() => undefined);

  const opened = async (
    id: GenerationId,
    own: readonly Collection[],
    isBuild: boolean,
  ): Promise<SqliteGeneration> => {
    const collections = [...own, ...COMMON_COLLECTIONS];
    await send('open', id, collections, isBuild);
    const file = { id, path: generationPath(folder, id), mark, onShort };
    const generation =
      open.get(generationName(id)) ?? sqliteGeneration(file, collections, maxCommitBytes, send);
    open.set(generationName(id), generation);
    return generation;
  };

  const closeRemoved = (id: GenerationId): void => {
    open.get(generationName(id))?.closeRemoved();
    open.delete(generationName(id));
  };

  return { opened, closeRemoved, all: () => [...open.values()] };
};

const OTHER_LOG_HINT =
  'Check STREAM_PREFIX and DATA_DIR: they name the log and the folder together. If this log is meant, move the folder of the read models away and start again: they are rebuilt from the log.';

/** Closes generations that were removed, by whichever process, and looks whether the live ones are damaged. */
const lookAfter = (
  { all, closeRemoved }: ReturnType<typeof openGenerations>,
  registry: RegistryReader,
  send: Send,
): void => {
  const { generations } = registry.state();
  for (const { id, look } of all()) {
    const stored = generations.find((found) => generationName(found) === generationName(id));
    if (stored?.isLive === true && stored.damage === undefined) look();
    if (stored !== undefined) continue;
    closeRemoved(id);
    send('close', id).catch(() => undefined);
  }
};

/**
 * Renames a damaged registry, so that another one is created. Which generations were live is then not known, so all are
 * built again.
 */
export const setDamagedRegistryAside = (
  folder: string,
  report: (what: string, error: unknown) => void,
): void => {
  const path = registryPath(folder);
  if (!existsSync(path)) return;
  try {
    checkRegistry(path);
  } catch (error) {
    if (!isDamagedFile(error, path)) return;
    const aside = setFileAside(path);
    const what = `The registry of the read models ${path} was damaged: it is ${aside} now, and another is created.`;
    report(what, error);
  }
};

/** Read models in SQLite files, one per generation, in a folder that several processes may share. */
export const sqliteReadModels = (
  folder: string,
  {
    writer: writerIn = (at) => answerInPlace(() => writing(at)),
    maxCommitBytes = MAX_COMMIT_BYTES,
    lookMs = 2_000,
  }: SqliteOptions = {},
): ReadModels => {
  const writer = writerIn(folder);
  const send = sender(folder, writer);
  const registry = registryReader(registryPath(folder));
  const open = openGenerations(folder, send, maxCommitBytes);
  const looking = setInterval(() => {
    try {
      lookAfter(open, registry, send);
    } catch {
      // The store cannot be read right now, or a generation is damaged and marked now. The next run tries again.
    }
  }, lookMs).unref();
  return {
    state: async () => registry.state(),
    stateToken: registry.token,
    makeLive: (...args) => send('makeLive', ...args),
    requestRetry: (...args) => send('requestRetry', ...args),
    leaseMs: LEASE_MS,
    lease: (...args) => send('lease', ...args),
    release: (...args) => send('release', ...args),
    create: async (id, own, log) => send('create', id, [...own, ...COMMON_COLLECTIONS], log),
    open: (id, collections) => open.opened(id, collections, false),
    build: async (id, collections) => {
      const generation = await open.opened(id, collections, true);
      return {
        ...generation,
        finish: async () => {
          await send('finish', id);
          return generation;
        },
      };
    },
    otherLogHint: OTHER_LOG_HINT,
    pollMs: 100,
    remove: async (id, unless) => {
      const isRemoved = await send('remove', id, unless);
      if (isRemoved) open.closeRemoved(id);
      return isRemoved;
    },
    close: async () => {
      clearInterval(looking);
      for (const generation of open.all()) generation.close();
      registry.close();
      await writer.close();
    },
  };
};
