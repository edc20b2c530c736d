import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Collection } from '../../../projections/projector';
import type { Outcome, ThreadBody } from '../../async/thread';
import { fault } from '../../fault';
import { isBusy } from '../../sqlite/database';
import {
  generationName,
  generationNamed,
  generationRemoved,
  isNumbered,
  type Checkpoint,
  type DocumentKey,
  type GenerationId,
  type RemovalGuard,
} from '../read-models';
import { damaged, lost } from '../damage';
import { guarded } from './damaged-file';
import { openGenerationWriter, type GenerationWriter, type OnWrite } from './generation-writer';
import { openRegistryWriter, type RegistryWrite, type RegistryWriter } from './registry-writer';
import type { Writes } from './writes';

/** Writes to the registry, as messages for the writing thread. */
interface RegistryRequest {
  readonly do: RegistryWrite | 'markDamaged';
  readonly args: readonly unknown[];
}

/** Writes to generations. */
type GenerationRequest =
  | {
      readonly do: 'create';
      readonly id: GenerationId;
      readonly collections: readonly Collection[];
      readonly log: string;
    }
  | {
      readonly do: 'open';
      readonly id: GenerationId;
      readonly collections: readonly Collection[];
      readonly isBuild: boolean;
    }
  | { readonly do: 'remove'; readonly id: GenerationId; readonly unless: RemovalGuard }
  | { readonly do: 'finish' | 'close'; readonly id: GenerationId }
  | {
      readonly do: 'commit';
      readonly id: GenerationId;
      readonly n: number;
      readonly to: Checkpoint | undefined;
      readonly writes: Writes;
    }
  | { readonly do: 'load'; readonly id: GenerationId; readonly keys: readonly DocumentKey[] };

type Request<What extends GenerationRequest['do']> = Extract<GenerationRequest, { readonly do: What }>;

export type WriteRequest = RegistryRequest | GenerationRequest;

export interface Writer {
  write(request: WriteRequest): unknown;
  close(): void;
}

export const registryPath = (folder: string): string => join(folder, 'registry.db');
export const generationPath = (folder: string, id: GenerationId): string =>
  join(folder, `${generationName(id)}.db`);

export const generationsIn = (folder: string): readonly GenerationId[] =>
  readdirSync(folder)
    .filter((file) => file.endsWith('.db'))
    .map((file) => generationNamed(basename(file, '.db')))
    .filter((id) => id !== undefined);

/** Opens an existing file without creating it (`mode=rw`), since it may be removed at this very moment. */
const existing = (path: string): string => {
  if (!existsSync(path)) throw lost('the file is missing.');
  return `${pathToFileURL(path).href}?mode=rw`;
};

const deleteFile = (folder: string, id: GenerationId): void => {
  for (const ending of ['', '-wal', '-shm'])
    rmSync(`${generationPath(folder, id)}${ending}`, { force: true });
};

/** The files that this writer has open, by the names of their generations. */
type OpenFiles = Map<string, GenerationWriter>;

const close = (files: OpenFiles, id: GenerationId): void => {
  files.get(generationName(id))?.close();
  files.delete(generationName(id));
};

/** What creates, opens and removes the files of generations that the registry knows. */
const fileKeeper = (folder: string, registry: RegistryWriter, files: OpenFiles, onWrite?: OnWrite) => ({
  create: ({ id, collections, log }: Request<'create'>): void => {
    const options = { collections, log, isBuild: true, onWrite };
    const make = () => openGenerationWriter(generationPath(folder, id), options);
    files.set(generationName(id), registry.add(id, make));
  },
  open: ({ id, collections, isBuild }: Request<'open'>): void => {
    const row = registry.find(id);
    if (row === undefined) throw generationRemoved(id);
    if (row.damage !== null) throw damaged(id, row.damage);
    const known = files.get(generationName(id));
    if (known !== undefined) return isBuild ? undefined : known.finish();
    const path = existing(generationPath(folder, id));
    files.set(generationName(id), openGenerationWriter(path, { collections, isBuild, onWrite }));
  },
  /** Also deletes files that the registry does not know: their creation was interrupted. */
  remove: ({ id, unless }: Request<'remove'>): boolean => {
    if (!registry.beginRemoval(id, unless)) return false;
    close(files, id);
    deleteFile(folder, id);
    registry.endRemoval(id);
    for (const left of generationsIn(folder).filter((other) => !isNumbered(other)))
      registry.unlessKnown(left, () => deleteFile(folder, left));
    return true;
  },
});

const generationWriters = (folder: string, registry: RegistryWriter, onWrite?: OnWrite) => {
  const files: OpenFiles = new Map();
  const { create, open, remove } = fileKeeper(folder, registry, files, onWrite);

  const opened = (id: GenerationId): GenerationWriter => {
    const writer = files.get(generationName(id));
    if (writer === undefined) throw fault('not_open', `Generation ${generationName(id)} is not open.`);
    return writer;
  };

  const write = (request: GenerationRequest): unknown => {
    switch (request.do) {
      case 'create':
        return create(request);
      case 'open':
        return open(request);
      case 'remove':
        return remove(request);
      case 'finish':
        return opened(request.id).finish();
      case 'commit':
        return opened(request.id).commit(request.n, request.to, request.writes);
      case 'load':
        return opened(request.id).load(request.keys);
      case 'close':
        return close(files, request.id);
    }
  };

  return {
    write: (request: GenerationRequest) =>
      guarded(request.id, generationPath(folder, request.id), registry.markDamaged, () => write(request)),
    closeAll: () => {
      for (const writer of files.values()) writer.close();
    },
  };
};

/** Opens the registry with the first write, so that reading creates nothing. */
export const openWriter = (folder: string, onWrite?: OnWrite): Writer => {
  const open = () => {
    mkdirSync(folder, { recursive: true });
    const registry = openRegistryWriter(registryPath(folder), () => generationsIn(folder));
    return { registry, generations: generationWriters(folder, registry, onWrite) };
  };
  let opened: ReturnType<typeof open> | undefined;
  return {
    write: (request) => {
      const { registry, generations } = (opened ??= open());
      if (!('args' in request)) return generations.write(request);
      return (registry[request.do] as (...args: readonly unknown[]) => unknown)(...request.args);
    },
    close: () => {
      opened?.generations.closeAll();
      opened?.registry.close();
    },
  };
};

/** Answers requests to write. */
export const writing = (folder: string, onWrite?: OnWrite): ThreadBody => {
  const writer = openWriter(folder, onWrite);
  const attempt = (request: unknown): Outcome => {
    try {
      return { value: writer.write(request as WriteRequest) };
    } catch (error) {
      return { error };
    }
  };
  return { answer: (requests) => requests.map(attempt), isRetried: isBusy, close: writer.close };
};
