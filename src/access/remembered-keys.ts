import type { KeyRecord } from '../domain/authority';
import type { Reader } from '../read-models/read-models';

/** Keys as a read model shows them, by digest, known for as long as it has not changed. */
export interface RememberedKeys {
  /** The store is asked at every call whether anything has changed: no answer is older than this. */
  of(reader: Reader): Map<string, KeyRecord>;
}

/** More than this is not remembered: then it begins anew. */
const MOST_REMEMBERED = 2_000;

export const rememberedKeys = (): RememberedKeys => {
  let last: { reader: Reader; token: number; keys: Map<string, KeyRecord> } | undefined;
  return {
    of: (reader) => {
      const token = reader.changeToken?.();
      if (token === undefined) return new Map();
      const isSame = last?.reader === reader && last.token === token;
      if (last === undefined || !isSame || last.keys.size >= MOST_REMEMBERED)
        last = { reader, token, keys: new Map() };
      return last.keys;
    },
  };
};
