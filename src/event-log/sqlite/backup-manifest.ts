import { createHash, randomUUID } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf, fault, messageOf, type Fault } from '../../fault';
import { isJsonObject } from '../../json';
import { NO_EVENTS, type Beginning } from './backup-events';
import { syncFile } from './log-file';
import { positionOf } from './reader';

export const MANIFEST = 'manifest.json';

/** Earlier programs stored one digest for each run of events. */
type Segments = readonly { readonly last: string; readonly events: number; readonly sha256: string }[];

/** The beginning of a log that a backup covers. */
export interface Manifest extends Beginning {
  /** The identity of the log. Undefined: the first backup into the folder is not finished. */
  readonly identity?: string;
  /** Of a backup that an earlier program made, instead of the chain. */
  readonly segments?: Segments;
}

export const unusable = (why: string): Fault => fault('backup_unusable', why);

const parsed = (text: string): Manifest | undefined => {
  const value: unknown = JSON.parse(text);
  const found = isJsonObject(value) ? value : {};
  const { format, identity, events, last_position, segments } = found;
  // Its name in the first backups of this format.
  const chain = found['chain'] ?? found['digest'];
  if (format === 2 && identity === undefined) return NO_EVENTS;
  if (typeof identity !== 'string') return undefined;
  if (format === 2 && typeof events === 'number' && typeof chain === 'string')
    return { identity, events, last: Number(last_position), chain };
  if (format !== 1 || !Array.isArray(segments)) return undefined;
  const runs = segments as unknown as Segments;
  const last = Number(runs.at(-1)?.last ?? 0);
  return {
    ...NO_EVENTS,
    identity,
    segments: runs,
    last,
    events: runs.reduce((sum, run) => sum + run.events, 0),
  };
};

export const readManifest = (folder: string): Manifest => {
  let found: Manifest | undefined;
  try {
    found = parsed(readFileSync(join(folder, MANIFEST), 'utf8'));
  } catch (error) {
    throw unusable(
      `The folder ${folder} contains no backup: its ${MANIFEST} cannot be read (${messageOf(error)}).`,
    );
  }
  if (found !== undefined) return found;
  throw unusable(
    `The ${MANIFEST} in ${folder} is not that of a backup, or was made by a newer tenant-ledger.`,
  );
};

/** Atomic, even across a power loss. */
const write = (folder: string, manifest: object, put: typeof renameSync): void => {
  const path = join(folder, MANIFEST);
  const temporary = `${path}.${randomUUID()}`;
  try {
    writeFileSync(temporary, `${JSON.stringify({ format: 2, ...manifest }, undefined, 2)}\n`, {
      flush: true,
    });
    put(temporary, path);
    syncFile(folder);
  } finally {
    rmSync(temporary, { force: true });
  }
};

export const replaceManifest = (
  folder: string,
  { identity, events, last, chain }: Beginning & { readonly identity: string },
): void => write(folder, { identity, events, last_position: positionOf(last), chain }, renameSync);

/** Marks a folder as one for backups. Never replaces a manifest that another process wrote in the meantime. */
export const startManifest = (folder: string): void => {
  try {
    write(folder, {}, linkSync);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
};

/** Compares the events of a backup, read in order, with its manifest. */
export const comparison = (manifest: Manifest) => {
  const rest = [...(manifest.segments ?? [])];
  let hash = createHash('sha256');
  let isEqual = true;
  return {
    onEvent: (position: number, bytes: Uint8Array): void => {
      if (rest.length > 0) hash.update(bytes);
      if (position !== Number(rest[0]?.last)) return;
      isEqual &&= hash.digest('hex') === rest.shift()?.sha256;
      hash = createHash('sha256');
    },
    isEqual: ({ events, chain }: Beginning): boolean =>
      events === manifest.events &&
      (manifest.segments === undefined ? chain === manifest.chain : isEqual && rest.length === 0),
  };
};
