/** `costOf` must always return the same cost for the same value. By default each value costs 1. */
export const boundedCache = <V>(max: number, costOf: (value: V) => number = () => 1) => {
  const values = new Map<string, V>();
  let cost = 0;
  const drop = (key: string): void => {
    const dropped = values.get(key);
    if (dropped !== undefined) cost -= costOf(dropped);
    values.delete(key);
  };
  return {
    get: (key: string): V | undefined => values.get(key),
    /** Puts the entry last, then evicts from the front until the total cost fits. The entry itself always stays. */
    put: (key: string, value: V): void => {
      drop(key);
      values.set(key, value);
      cost += costOf(value);
      if (cost <= max) return;
      for (const oldest of values.keys()) {
        if (cost <= max || oldest === key) return;
        drop(oldest);
      }
    },
    delete: drop,
  };
};

export type BoundedCache<V> = ReturnType<typeof boundedCache<V>>;
