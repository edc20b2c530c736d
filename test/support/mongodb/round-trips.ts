/** How often the server was asked, by command and collection. The driver's own monitoring is not counted. */
export interface RoundTrips {
  /** All of them, or those of these commands and collections. */
  count(of?: {
    readonly command?: string | readonly string[];
    readonly collection?: string | RegExp;
  }): number;
  /** `find logs_v1_1/rows` and the like, with their numbers. */
  table(): Readonly<Record<string, number>>;
  reset(): void;
  add(command: string, collection: string | undefined): void;
}

export const countRoundTrips = (): RoundTrips => {
  const counts = new Map<string, { readonly command: string; readonly collection: string; n: number }>();
  return {
    count: ({ command, collection } = {}) =>
      [...counts.values()]
        .filter((one) => command === undefined || [command].flat().includes(one.command))
        .filter(
          (one) =>
            collection === undefined ||
            (typeof collection === 'string'
              ? collection === one.collection
              : collection.test(one.collection)),
        )
        .reduce((sum, { n }) => sum + n, 0),
    table: () => Object.fromEntries([...counts].map(([name, { n }]) => [name, n])),
    reset: () => counts.clear(),
    add: (command, collection = '') => {
      const name = `${command} ${collection}`.trim();
      const entry = counts.get(name) ?? { command, collection, n: 0 };
      entry.n += 1;
      counts.set(name, entry);
    },
  };
};
