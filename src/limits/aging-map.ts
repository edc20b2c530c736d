/**
 * A map that knows its oldest key, by when it was inserted, not by when its value last changed.
 *
 * A new iterator has to skip the slots of deleted entries to find the first key, which makes a full map a thousand
 * times slower. So a single iterator is kept and advanced.
 */
export const agingMap = <Value>() => {
  const values = new Map<string, Value>();
  let order = values.keys();
  let first: string | undefined;

  const next = (): string | undefined => {
    const { value, done } = order.next();
    if (done !== true) return value;
    if (values.size === 0) return undefined;
    order = values.keys();
    return order.next().value;
  };

  return {
    get size() {
      return values.size;
    },
    get: (key: string) => values.get(key),
    set: (key: string, value: Value) => void values.set(key, value),
    delete: (key: string): boolean => {
      // It may be inserted again, as the youngest.
      if (key === first) first = undefined;
      return values.delete(key);
    },
    oldest: (): string | undefined => {
      first ??= next();
      return first;
    },
  };
};

export type AgingMap<Value> = ReturnType<typeof agingMap<Value>>;
