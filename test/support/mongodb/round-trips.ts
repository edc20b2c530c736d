import type { Binary, Document } from 'mongodb';

/** How many commands the server received, by command and collection. The driver's own monitoring is not counted. */
export interface RoundTrips {
  count(of?: Which): number;
  /** The number of steps in sequence: commands in progress at the same time count as one. */
  inTurn(of?: Which): number;
  /** `find logs_v1_1/rows` and the like, with their counts. */
  table(): Readonly<Record<string, number>>;
  /** The commands whose replies waited until a majority of the servers had them, as `table` names them. */
  awaitingMajority(): readonly string[];
  /** How long each committed transaction took, in milliseconds: from its first command, and its commit alone. */
  transactions(): readonly Transaction[];
  reset(): void;
  /** Records a command; the returned function records its reply. */
  begin(command: string, collection: string | undefined, body: Document): () => void;
}

interface Transaction {
  readonly ms: number;
  readonly commitMs: number;
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

/** Tells the transactions of sessions from their commands. */
const watchTransactions = () => {
  const begun = new Map<string, number>();
  const committed: Transaction[] = [];
  return {
    committed,
    /** The returned function records the reply. */
    begin: (command: string, body: Document): (() => void) => {
      const { lsid, startTransaction } = body as { lsid?: { id?: Binary }; startTransaction?: boolean };
      const session = lsid?.id?.toString('hex') ?? '';
      const now = performance.now();
      if (startTransaction === true) begun.set(session, now);
      if (command !== 'commitTransaction') return () => undefined;
      const from = begun.get(session) ?? now;
      return () => {
        const end = performance.now();
        committed.push({ ms: end - from, commitMs: end - now });
      };
    },
  };
};

const fits = ({ command, collection }: Which, one: Pick<RoundTrip, 'command' | 'collection'>): boolean =>
  (command === undefined || [command].flat().includes(one.command)) &&
  (collection === undefined ||
    (typeof collection === 'string' ? collection === one.collection : collection.test(one.collection)));

export const countRoundTrips = (): RoundTrips => {
  const counts = new Map<string, { readonly command: string; readonly collection: string; n: number }>();
  let timed: RoundTrip[] = [];
  let majority: string[] = [];
  let watched = watchTransactions();
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
    transactions: () => watched.committed,
    reset: () => {
      counts.clear();
      [timed, majority] = [[], []];
      watched = watchTransactions();
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
      const end = watched.begin(command, body);
      return () => {
        one.upTo = performance.now();
        end();
      };
    },
  };
};
