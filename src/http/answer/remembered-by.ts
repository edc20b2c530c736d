import type { Reader } from '../../../projections/projector';

/** More than this is not remembered: then it begins anew. */
const MOST_REMEMBERED = 2_000;

interface Remembered<T> {
  readonly get: (name: string) => T | undefined;
  readonly set: (name: string, value: T) => void;
}

const bounded = <T>(most: number): Remembered<T> => {
  const known = new Map<string, T>();
  return {
    get: (name) => known.get(name),
    set: (name, value) => {
      if (known.size >= most) known.clear();
      known.set(name, value);
    },
  };
};

/** What was made of a reader's answers, known as long as that reader shows the same: of large things only a few. */
export const rememberedBy = <T>(most = MOST_REMEMBERED): ((reader: Reader) => Remembered<T>) => {
  const all = new WeakMap<Reader, Remembered<T>>();
  return (reader) => {
    const known = all.get(reader);
    if (known !== undefined) return known;
    const fresh = bounded<T>(most);
    all.set(reader, fresh);
    return fresh;
  };
};
