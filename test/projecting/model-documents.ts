/** A step of a process: whoever yields lets others run. */
export type Steps<T = void> = Generator<void, T, void>;

/** The name of a document, and what the document is. */
export type Name<T> = string & { readonly document?: T };

export type Write = readonly [name: Name<unknown>, document: unknown];

interface Version {
  readonly number: number;
  /** Undefined: it was removed. */
  readonly document: unknown;
}

/** Reads a document. */
export type Read = <T>(name: Name<T>) => T | undefined;

/** How many answers to a commit are lost. */
const LOST = 0.03;

/** A store of documents. A write of one document is atomic; a transaction reads one snapshot. */
export const modelDocuments = (random: () => number) => {
  const all = new Map<string, Version[]>();
  const current = new Set<string>();
  let last = 0;
  let conflicts = 0;

  const versionAt = (name: string, at: number): Version | undefined =>
    all.get(name)?.findLast(({ number }) => number <= at);
  const readAt =
    (at: number): Read =>
    <T>(name: Name<T>) =>
      versionAt(name, at)?.document as T | undefined;
  const read: Read = <T>(name: Name<T>) => all.get(name)?.at(-1)?.document as T | undefined;
  const write = (name: string, document: unknown): void => {
    const versions = all.get(name) ?? [];
    versions.push({ number: (last += 1), document });
    all.set(name, versions);
    if (document === undefined) current.delete(name);
    else current.add(name);
  };

  return {
    read,
    put: <T>(name: Name<T>, document: T): void => write(name, document),
    remove: (name: string): void => write(name, undefined),
    names: (): readonly string[] => [...current],
    versionOf: (name: string): number => all.get(name)?.at(-1)?.number ?? 0,
    conflicts: (): number => conflicts,

    /**
     * Commits only if nothing that it writes was written by others since its snapshot. False: nothing was written, or
     * the answer was lost.
     */
    *transaction(work: (read: Read) => readonly Write[] | undefined): Steps<boolean> {
      const snapshot = last;
      yield;
      const writes = work(readAt(snapshot));
      if (writes === undefined) return false;
      yield;
      if (writes.some(([name]) => (all.get(name)?.at(-1)?.number ?? 0) > snapshot)) {
        conflicts += 1;
        return false;
      }
      for (const [name, document] of writes) write(name, document);
      if (random() >= LOST) return true;
      yield;
      return false;
    },
  };
};

export type ModelDocuments = ReturnType<typeof modelDocuments>;
