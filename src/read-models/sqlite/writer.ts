import { existsSync, readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Collection } from '../../../projections/projector';
import { fault } from '../../fault';
import {
  generationName,
  generationNamed,
  type Checkpoint,
  type DocumentKey,
  type GenerationId,
} from '../read-models';
import { damaged, lost } from '../damage';
import { guarded } from './damaged-file';
import { openGenerationWriter, type GenerationWriter, type OnWrite } from './generation-writer';
import { openRegistryWriter, type RegistryWrite, type RegistryWriter } from './registry-writer';
import type { Writes } from './writes';

/** Writes to the registry, as messages for the writer thread. */
interface RegistryRequest {
  readonly do: RegistryWrite | 'markDamaged';
  readonly args: readonly unknown[];
}

/** Writes to generations. */
type GenerationRequest =
  | {
      readonly do: 'open';
      readonly id: GenerationId;
      readonly collections: readonly Collection[];
      readonly log: string;
      readonly isBuild: boolean;
    }
  | { readonly do: 'finish' | 'close' | 'drop'; readonly id: GenerationId }
  | {
      readonly do: 'commit';
      readonly id: GenerationId;
      readonly n: number;
      readonly to: Checkpoint | undefined;
      readonly writes: Writes;
    }
  | { readonly do: 'load'; readonly id: GenerationId; readonly keys: readonly DocumentKey[] };

export type WriteRequest = { readonly do: 'ready' } | RegistryRequest | GenerationRequest;

export interface Writer {
  write(request: WriteRequest): unknown;
  close(): void;
}

export const indexPath = (folder: string): string => join(folder, 'index.db');
export const generationPath = (folder: string, id: GenerationId): string =>
  join(folder, `${generationName(id)}.db`);

export const generationsIn = (folder: string): readonly GenerationId[] =>
  readdirSync(folder)
    .filter((file) => file.endsWith('.db'))
    .map((file) => generationNamed(basename(file, '.db')))
    .filter((id) => id !== undefined);

type OpenRequest = Extract<GenerationRequest, { do: 'open' }>;

/** Opens an existing file without creating it (`mode=rw`), since it may be removed at this very moment. */
const openFile = (
  folder: string,
  registry: RegistryWriter,
  { id, collections, log, isBuild }: OpenRequest,
  onWrite: OnWrite | undefined,
): GenerationWriter => {
  const path = generationPath(folder, id);
  const mayCreate = !registry.isPointedAt(id);
  const openAt = (place: string) =>
    openGenerationWriter(place, { collections, log, isBuild, mayCreate, onWrite });
  if (existsSync(path)) return openAt(`${pathToFileURL(path).href}?mode=rw`);
  return registry.unlessRemoved(id, () => {
    if (!mayCreate) throw lost('the file is missing.');
    return openAt(path);
  });
};

const generationWriters = (folder: string, registry: RegistryWriter, onWrite?: OnWrite) => {
  const open = new Map<string, GenerationWriter>();

  const opened = (id: GenerationId): GenerationWriter => {
    const writer = open.get(generationName(id));
    if (writer === undefined) throw fault('not_open', `Generation ${generationName(id)} is not open.`);
    return writer;
  };

  const close = (id: GenerationId): void => {
    open.get(generationName(id))?.close();
    open.delete(generationName(id));
  };

  const write = (request: GenerationRequest): unknown => {
    switch (request.do) {
      case 'open': {
        const why = registry.damageOf(request.id);
        if (why !== undefined) throw damaged(request.id, why);
        const known = open.get(generationName(request.id));
        if (known === undefined)
          open.set(generationName(request.id), openFile(folder, registry, request, onWrite));
        else if (!request.isBuild) known.finish();
        return true;
      }
      case 'finish':
        return opened(request.id).finish();
      case 'commit':
        return opened(request.id).commit(request.n, request.to, request.writes);
      case 'load':
        return opened(request.id).load(request.keys);
      case 'close':
        return close(request.id);
      case 'drop':
        close(request.id);
        for (const ending of ['', '-wal', '-shm'])
          rmSync(`${generationPath(folder, request.id)}${ending}`, { force: true });
        return true;
    }
  };

  return {
    write: (request: GenerationRequest) =>
      guarded(request.id, generationPath(folder, request.id), registry.markDamaged, () => write(request)),
    closeAll: () => {
      for (const writer of open.values()) writer.close();
    },
  };
};

export const openWriter = (folder: string, onWrite?: OnWrite): Writer => {
  const registry = openRegistryWriter(indexPath(folder), () => generationsIn(folder));
  const generations = generationWriters(folder, registry, onWrite);
  return {
    write: (request) => {
      if (request.do === 'ready') return true;
      if (!('args' in request)) return generations.write(request);
      return (registry[request.do] as (...args: readonly unknown[]) => unknown)(...request.args);
    },
    close: () => {
      generations.closeAll();
      registry.close();
    },
  };
};
