import type { Document } from 'mongodb';

/** How many commands the server received, by command and collection. The driver's own monitoring is not counted. */
export interface RoundTrips {
  /** All of them, or those of these commands and collections. */
  count(of?: Which): number;
  /** The number of steps in sequence: commands in progress at the same time count as one. */
  inTurn(of?: Which): number;
  /** `find logs_v1_1/rows` and the like, with their counts. */
  table(): Readonly<Record<string, number>>;
  /** The commands whose replies waited until a majority of the servers had them, as `table` names them. */
  awaitingMajority(): readonly string[];
  reset(): void;
  /** Records a command; the returned function records its reply. */
  begin(command: string, collection: string | undefined, body: Document): () => void;
}

interface Which {
  readonly command?: string | readonly string[];
  readonly collection?: string | RegExp;
}

interface RoundTrip {
  readonly command: string;
  readonly collection: string;
  readonly from: number;
  upTo: number;
}

/** Beyond this many only the counts are kept. */
const MAX_TIMED = 10_000;

const fits = ({ command, collection }: Which, one: Pick<RoundTrip, 'command' | 'collection'>): boolean =>
  (command === undefined || [command].flat().includes(one.command)) &&
  (collection === undefined ||
    (typeof collection === 'string' ? collection === one.collection : collection.test(one.collection)));

export const countRoundTrips = (): RoundTrips => {
  const counts = new Map<string, { readonly command: string; readonly collection: string; n: number }>();
  let timed: RoundTrip[] = [];
  let majority: string[] = [];
  return {
    count: (of = {}) =>
      [...counts.values()].filter((count) => fits(of, count)).reduce((sum, { n }) => sum + n, 0),
    inTurn: (of = {}) => {
      let [turns, end] = [0, -Infinity];
      for (const { from, upTo } of timed.filter((trip) => fits(of, trip))) {
        if (from >= end) turns += 1;
        end = from >= end ? upTo : Math.min(end, upTo);
      }
      return turns;
    },
    table: () => Object.fromEntries([...counts].map(([name, { n }]) => [name, n])),
    awaitingMajority: () => majority,
    reset: () => {
      counts.clear();
      [timed, majority] = [[], []];
    },
    begin: (command, collection = '', body) => {
      const name = `${command} ${collection}`.trim();
      const entry = counts.get(name) ?? { command, collection, n: 0 };
      entry.n += 1;
      const { w } = (body['writeConcern'] ?? {}) as { readonly w?: unknown };
      if (w === 'majority' && majority.length < MAX_TIMED) majority.push(name);
      counts.set(name, entry);
      const one: RoundTrip = { command, collection, from: performance.now(), upTo: Infinity };
      if (timed.length < MAX_TIMED) timed.push(one);
      return () => (one.upTo = performance.now());
    },
  };
};
