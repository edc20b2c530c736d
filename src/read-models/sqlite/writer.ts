import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Collection } from '../../../projections/projector';
import { answerEach, type ThreadBody } from '../../async/thread';
import { fault } from '../../fault';
import { isBusy } from '../../sqlite/database';
import {
  generationName,
  generationNamed,
  generationRemoved,
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

export const registryPath = (folder: string): string => join(folder, 'registry.db');
export const generationPath = (folder: string, id: GenerationId): string =>
  join(folder, `${generationName(id)}.db`);

const generationsIn = (folder: string): readonly GenerationId[] =>
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

/** What is written about generations that the registry knows. */
const generationWrites = (folder: string, registry: RegistryWriter, files: OpenFiles, onWrite?: OnWrite) => {
  const opened = (id: GenerationId): GenerationWriter => {
    const writer = files.get(generationName(id));
    if (writer === undefined) throw fault('not_open', `Generation ${generationName(id)} is not open.`);
    return writer;
  };
  const close = (id: GenerationId): void => {
    files.get(generationName(id))?.close();
    files.delete(generationName(id));
  };

  /** Their creation was interrupted. If the registry is busy, the next removal does it. */
  const deleteUnknown = (): void => {
    try {
      for (const id of generationsIn(folder)) registry.unlessKnown(id, () => deleteFile(folder, id));
    } catch (error) {
      if (!isBusy(error)) throw error;
    }
  };

  return {
    create: (id: GenerationId, collections: readonly Collection[], log: string): void => {
      const options = { collections, log, isBuild: true, onWrite };
      const make = () => openGenerationWriter(generationPath(folder, id), options);
      files.set(generationName(id), registry.add(id, make));
    },
    open: (id: GenerationId, collections: readonly Collection[], isBuild: boolean): void => {
      const row = registry.find(id);
      if (row === undefined) throw generationRemoved(id);
      if (row.damage !== null) throw damaged(id, row.damage);
      const known = files.get(generationName(id));
      if (known !== undefined) return isBuild ? undefined : known.finish();
      const path = existing(generationPath(folder, id));
      files.set(generationName(id), openGenerationWriter(path, { collections, isBuild, onWrite }));
    },
    remove: (id: GenerationId, unless: RemovalGuard): boolean => {
      if (!registry.beginRemoval(id, unless)) return false;
      close(id);
      deleteFile(folder, id);
      registry.endRemoval(id);
      deleteUnknown();
      return true;
    },
    finish: (id: GenerationId): void => opened(id).finish(),
    checkSize: (id: GenerationId): void => opened(id).checkSize(),
    load: (id: GenerationId, keys: readonly DocumentKey[]) => opened(id).load(keys),
    commit: (id: GenerationId, n: number, to: Checkpoint | undefined, writes: Writes): boolean =>
      opened(id).commit(n, to, writes),
    close,
  };
};

type Writing = ReturnType<typeof generationWrites> & Pick<RegistryWriter, RegistryWrite | 'markDamaged'>;

/** What the writing thread is asked: the name of a write, and its arguments. */
export interface WriteRequest {
  readonly do: keyof Writing;
  readonly args: readonly unknown[];
}

/** Sends a request to the writer, in whichever thread it runs. */
export type Send = <W extends keyof Writing>(
  write: W,
  ...args: Parameters<Writing[W]>
) => Promise<ReturnType<Writing[W]>>;

/** Answers requests to write. Opens the registry with the first one, so that reading creates nothing. */
export const writing = (folder: string, onWrite?: OnWrite): ThreadBody => {
  const files: OpenFiles = new Map();
  const open = () => {
    mkdirSync(folder, { recursive: true });
    const registry = openRegistryWriter(registryPath(folder), () => generationsIn(folder));
    const generations = generationWrites(folder, registry, files, onWrite);
    return { registry, generations, writes: { ...registry, ...generations } };
  };
  let opened: ReturnType<typeof open> | undefined;
  return {
    answer: answerEach(({ do: name, args }: WriteRequest) => {
      const { registry, generations, writes } = (opened ??= open());
      const write = writes[name] as (...given: typeof args) => unknown;
      if (!(name in generations)) return write(...args);
      const id = args[0] as GenerationId;
      return guarded(id, generationPath(folder, id), registry.markDamaged, () => write(...args));
    }),
    isRetried: isBusy,
    close: () => {
      for (const writer of files.values()) writer.close();
      opened?.registry.close();
    },
  };
};
