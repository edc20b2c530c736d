import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Collection } from '../../../projections/projector';
import { fault } from '../../fault';
import {
  generationName,
  type Checkpoint,
  type DocumentKey,
  type GenerationId,
  type Pointer,
  type RemovalRefused,
} from '../read-models';
import { openGenerationWriter, type GenerationWriter, type OnWrite } from './generation-writer';
import { openIndexWriter } from './index-writer';
import type { Writes } from './writes';

/** Everything that is written to the read models, as messages, so that it can be done in another thread. */
export type WriteRequest =
  | { readonly do: 'ready' }
  | {
      readonly do: 'open';
      readonly id: GenerationId;
      readonly collections: readonly Collection[];
      readonly log: string;
      readonly isBuild: boolean;
    }
  | { readonly do: 'finish' | 'close' | 'drop'; readonly id: GenerationId }
  | { readonly do: 'requestRetry'; readonly tenantId: string }
  | {
      readonly do: 'commit';
      readonly id: GenerationId;
      readonly n: number;
      readonly to: Checkpoint | undefined;
      readonly writes: Writes;
    }
  | { readonly do: 'load'; readonly id: GenerationId; readonly keys: readonly DocumentKey[] }
  | {
      readonly do: 'point';
      readonly projection: string;
      readonly version: number;
      readonly to: Pointer;
      readonly believed: Pointer | undefined;
    }
  | { readonly do: 'markRemoved'; readonly id: GenerationId; readonly unless: RemovalRefused }
  | { readonly do: 'nextNumber'; readonly projection: string; readonly version: number }
  | {
      readonly do: 'lease';
      readonly what: string;
      readonly holder: string;
      readonly forMs: number;
      readonly note: string;
    }
  | { readonly do: 'release'; readonly what: string; readonly holder: string };

export interface Writer {
  write(request: WriteRequest): unknown;
  close(): void;
}

export const indexPath = (folder: string): string => join(folder, 'index.db');
export const generationPath = (folder: string, id: GenerationId): string =>
  join(folder, `${generationName(id)}.db`);

const FILE = /^([a-z_]+)_v([0-9]+)_([0-9]+)\.db$/;

export const generationsIn = (folder: string): readonly GenerationId[] =>
  readdirSync(folder).flatMap((file) => {
    const match = FILE.exec(file);
    if (match === null) return [];
    return [{ projection: match[1] as string, version: Number(match[2]), generation: Number(match[3]) }];
  });

const numbersIn = (folder: string, projection: string, version: number): readonly number[] =>
  generationsIn(folder)
    .filter((id) => id.projection === projection && id.version === version)
    .map((id) => id.generation);

export const openWriter = (folder: string, onWrite?: OnWrite): Writer => {
  const index = openIndexWriter(indexPath(folder));
  const generations = new Map<string, GenerationWriter>();

  const generation = (id: GenerationId): GenerationWriter => {
    const writer = generations.get(generationName(id));
    if (writer === undefined) throw fault('not_open', `Generation ${generationName(id)} is not open.`);
    return writer;
  };

  const close = (id: GenerationId): void => {
    generations.get(generationName(id))?.close();
    generations.delete(generationName(id));
  };

  /** What is there is opened and never made: it may be removed at this very moment. */
  const openGeneration = (request: Extract<WriteRequest, { do: 'open' }>): GenerationWriter => {
    const { id, collections, log, isBuild } = request;
    const path = generationPath(folder, id);
    const openAt = (place: string) => openGenerationWriter(place, collections, log, isBuild, onWrite);
    if (existsSync(path)) return openAt(`${pathToFileURL(path).href}?mode=rw`);
    return index.unlessRemoved(id, () => openAt(path));
  };

  const write = (request: WriteRequest): unknown => {
    switch (request.do) {
      case 'ready':
        return true;
      case 'open': {
        const name = generationName(request.id);
        const known = generations.get(name);
        if (known === undefined) generations.set(name, openGeneration(request));
        else if (!request.isBuild) known.finish();
        return true;
      }
      case 'finish':
        return generation(request.id).finish();
      case 'close':
        return close(request.id);
      case 'drop':
        close(request.id);
        for (const ending of ['', '-wal', '-shm'])
          rmSync(`${generationPath(folder, request.id)}${ending}`, { force: true });
        return true;
      case 'requestRetry':
        return index.requestRetry(request.tenantId);
      case 'commit':
        return generation(request.id).commit(request.n, request.to, request.writes);
      case 'load':
        return generation(request.id).load(request.keys);
      case 'point':
        return index.point(request.projection, request.version, request.to, request.believed);
      case 'markRemoved':
        return index.markRemoved(request.id, request.unless);
      case 'nextNumber': {
        const { projection, version } = request;
        return index.nextNumber(projection, version, numbersIn(folder, projection, version));
      }
      case 'lease':
        return index.lease(request.what, request.holder, request.forMs, request.note);
      case 'release':
        return index.release(request.what, request.holder);
    }
  };

  return {
    write,
    close: () => {
      for (const writer of generations.values()) writer.close();
      index.close();
    },
  };
};
