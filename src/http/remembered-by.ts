import type { Reader } from '../../projections/projector';

/** More than this is not remembered: then it begins anew. */
const MOST_REMEMBERED = 2_000;

interface Remembered<T> {
  readonly get: (name: string) => T | undefined;
  readonly set: (name: string, value: T) => void;
}

const bounded = <T>(): Remembered<T> => {
  const known = new Map<string, T>();
  return {
    get: (name) => known.get(name),
    set: (name, value) => {
      if (known.size >= MOST_REMEMBERED) known.clear();
      known.set(name, value);
    },
  };
};

/** What was made of a reader's answers, known as long as that reader shows the same. */
export const rememberedBy = <T>(): ((reader: Reader) => Remembered<T>) => {
  const all = new WeakMap<Reader, Remembered<T>>();
  return (reader) => {
    const known = all.get(reader);
    if (known !== undefined) return known;
    const fresh = bounded<T>();
    all.set(reader, fresh);
    return fresh;
  };
};
