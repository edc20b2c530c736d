import type { KeyRecord } from '../domain/authority';
import type { Generation } from '../read-models/read-models';

/** Keys as a read model shows them, by digest, known for as long as it has not changed. */
export interface RememberedKeys {
  /** The store is asked at every call whether anything has changed: no answer is older than this. */
  of(generation: Generation): Map<string, KeyRecord>;
}

/** More than this is not remembered: then it begins anew. */
const MOST_REMEMBERED = 2_000;

export const rememberedKeys = (): RememberedKeys => {
  let last: { generation: Generation; version: number; keys: Map<string, KeyRecord> } | undefined;
  return {
    of: (generation) => {
      const version = generation.version?.();
      if (version === undefined) return new Map();
      const isSame = last?.generation === generation && last.version === version;
      if (last === undefined || !isSame || last.keys.size >= MOST_REMEMBERED)
        last = { generation, version, keys: new Map() };
      return last.keys;
    },
  };
};
