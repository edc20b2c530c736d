import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { PROGRESS, type Collection } from '../../../projections/projector';
import { fileIdOf, unlinkDatabase } from '../../sqlite/database';
import { createSet, damagedMarkOf, setFile, type SetFile } from './set-file';
import type { StoredControl } from './set-reader';

const FILE = /^set-(.+)-([0-9a-f]+)\.db(?:-wal|-shm|-damaged)?$/;

export interface Entry {
  readonly version: string;
  readonly id: string;
}

/** The sets of a folder. A file stays open until it is closed. */
export const setsIn = (folder: string, collections: readonly Collection[], busyMs: number) => {
  const declared = new Map([...collections, PROGRESS].map((one) => [one.name, one]));
  const files = new Map<string, SetFile>();
  const pathOf = ({ version, id }: Entry): string => join(folder, `set-${version}-${id}.db`);
  const fileOf = (entry: Entry, isBuild = false): SetFile => {
    const place = { id: entry.id, path: pathOf(entry), collections: declared, busyMs, isBuild };
    const file = files.get(entry.id) ?? setFile(place);
    files.set(entry.id, file);
    return file;
  };
  const close = async (id: string): Promise<void> => {
    const file = files.get(id);
    files.delete(id);
    await file?.close();
  };
  return {
    isOpen: (id: string): boolean => files.has(id),
    fileOf,
    close,
    closeAll: async () => void (await Promise.all([...files.keys()].map(close))),
    /** Looks again if another file has got the name of one that was open. */
    lookAt: (entry: Entry, staysOpen = false): StoredControl | undefined => {
      for (;;) {
        const wasOpen = files.has(entry.id);
        const control = fileOf(entry).look();
        if (control === undefined || !(wasOpen || staysOpen)) void close(entry.id);
        if (control !== undefined || !wasOpen) return control;
      }
    },
    unlink: (entry: Entry): void => {
      unlinkDatabase(pathOf(entry));
      rmSync(damagedMarkOf(pathOf(entry)), { force: true });
    },
    create: (version: string, log: string): SetFile => {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const entry = { version, id: randomBytes(8).toString('hex') };
      createSet(pathOf(entry), declared, log);
      return fileOf(entry, true);
    },
    /** All sets, also those of which only some of the files are left. */
    entries: (): readonly Entry[] => {
      const names = fileIdOf(folder) === undefined ? [] : readdirSync(folder);
      const found = names.map((name) => FILE.exec(name) ?? []);
      const entries = found.map(([, version = '', id = '']) => [id, { version, id }] as const);
      return [...new Map(entries).values()].filter(({ id }) => id !== '');
    },
    /** The time for a set that has no control state: it was left in the middle of its creation or removal. */
    changedAt: (entry: Entry): string =>
      (statSync(pathOf(entry), { throwIfNoEntry: false })?.mtime ?? new Date(0)).toISOString(),
  };
};

export type Sets = ReturnType<typeof setsIn>;

/** All sets from a root to the end of the chain, which is broken if it leads to one that does not exist. */
export const wayFrom = (root: string | undefined, version: string, { lookAt }: Sets) => {
  const way: string[] = [];
  for (let id = root; id !== undefined;) {
    way.push(id);
    const control = lookAt({ version, id });
    if (control === undefined) return { way, isBroken: true };
    id = control.next;
  }
  return { way, isBroken: false };
};
