import type { Client, ClientUse } from '../domain/events';
import type { RefusedAccess } from '../domain/refusal';

export interface Use {
  readonly operation: string;
  /** Its response is an export, or a stream that is followed. */
  readonly beginsStream?: boolean;
}

/** A request that a key was accepted for, one that it was refused, or the end of a response that gave events out. */
export type KeyAct = Use | RefusedAccess | { readonly eventsGivenOut: number };

/** The addresses of all keys, at up to a kilobyte each. What comes from further ones is added up. */
const MAX_ADDRESSES = 50_000;
const MAX_ADDRESSES_OF_DAY = 20;

/** Where a key was used from on a day. */
export interface KeyClients {
  /** What no event says yet, by address. */
  readonly uses: Map<string, ClientUse | undefined>;
  /** The same of all further addresses. */
  others: ClientUse | undefined;
  last: Client | undefined;
}

const added = (use: ClientUse | undefined, at: string, act: KeyAct, client: Partial<Client>): ClientUse => {
  const { requests = 0, firstAt = at, lastAt = at } = use ?? {};
  return {
    ...client,
    requests: requests + ('eventsGivenOut' in act ? 0 : 1),
    firstAt: at < firstAt ? at : firstAt,
    lastAt: at > lastAt ? at : lastAt,
  };
};

/** Counts what came from where, within bounds. */
export const clientCounter = () => {
  let addresses = 0;
  return {
    begin: (): KeyClients => ({ uses: new Map(), others: undefined, last: undefined }),
    /** Whether it is the first from this address on the day. */
    add: (clients: KeyClients, at: string, act: KeyAct, client: Client | undefined): boolean => {
      const { uses } = clients;
      clients.last = client ?? clients.last;
      const name = `${client?.address} ${client?.reportedBy ?? ''}`;
      const isNew = !uses.has(name);
      const isFull = uses.size >= MAX_ADDRESSES_OF_DAY || addresses >= MAX_ADDRESSES;
      // A service that verifies a key need not say where that came from.
      if (client === undefined || (isNew && isFull)) {
        clients.others = added(clients.others, at, act, {});
        return false;
      }
      if (isNew) addresses += 1;
      uses.set(name, added(uses.get(name), at, act, client));
      return isNew;
    },
    /** What is in no event yet, as the metadata of one says it, which from now on does. */
    take: (clients: KeyClients) => {
      const { uses, others, last } = clients;
      const all = [...uses.values(), others].flatMap((use) => use ?? []);
      for (const name of uses.keys()) uses.set(name, undefined);
      clients.others = undefined;
      return all.length === 0 ? {} : { client: last, clients: all };
    },
    forget: ({ uses }: KeyClients): void => void (addresses -= uses.size),
  };
};

export type ClientCounter = ReturnType<typeof clientCounter>;

/** Each name at most so often in an hour. */
export type HourlyLimit = readonly [name: string, max: number];

/** Whether all limits still allow something in this hour; then it counts. */
export const hourlyLimits = (now: () => number) => {
  let hour = NaN;
  let counts = new Map<string, number>();
  return (...limits: readonly HourlyLimit[]): boolean => {
    const current = Math.floor(now() / 3_600_000);
    if (current !== hour) counts = new Map();
    hour = current;
    if (limits.some(([name, max]) => (counts.get(name) ?? 0) >= max)) return false;
    for (const [name] of limits) counts.set(name, (counts.get(name) ?? 0) + 1);
    return true;
  };
};
