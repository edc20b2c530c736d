export interface BoundedCache<V> {
  get(key: string): V | undefined;
  /** Puts it last. The first ones are dropped until the rest costs no more than allowed; the last one always stays. */
  put(key: string, value: V): void;
  delete(key: string): void;
}

/** `costOf` gives the same for the same value; left out, values are counted. */
export const boundedCache = <V>(max: number, costOf: (value: V) => number = () => 1): BoundedCache<V> => {
  const values = new Map<string, V>();
  let cost = 0;
  const drop = (key: string): void => {
    const dropped = values.get(key);
    if (dropped !== undefined) cost -= costOf(dropped);
    values.delete(key);
  };
  return {
    get: (key) => values.get(key),
    put: (key, value) => {
      drop(key);
      values.set(key, value);
      cost += costOf(value);
      if (cost <= max) return;
      for (const first of values.keys()) {
        if (cost <= max || first === key) return;
        drop(first);
      }
    },
    delete: drop,
  };
};
