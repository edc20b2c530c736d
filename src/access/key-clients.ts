import type { Client, ClientUse } from '../domain/events';
import type { RefusedAccess } from '../domain/refusal';

/** A request that a key was accepted for, one that it was refused, or the end of a response that gave events out. */
export type KeyAct =
  | { readonly operation: string; readonly beginsStream?: boolean }
  | RefusedAccess
  | { readonly eventsGivenOut: number };

/** The addresses of all keys, at up to a kilobyte each. What comes from further ones is added up. */
const MAX_ADDRESSES = 50_000;
const MAX_ADDRESSES_OF_DAY = 20;

/** What came from one address on the day of a key. */
interface KeyClient {
  /** What no event says yet. */
  use: ClientUse | undefined;
  /** The hour in which the beginning of a stream was last put on record, by its operation. */
  readonly begunIn: Record<string, string>;
}

/** Where a key was used from on a day. */
export interface KeyClients {
  readonly byAddress: Map<string, KeyClient>;
  /** All that have no entry of their own, which are all if clients are not recorded. */
  readonly others: KeyClient;
  last: Client | undefined;
}

const unused = (): KeyClient => ({ use: undefined, begunIn: {} });

const addTo = (of: KeyClient, at: string, act: KeyAct, client: Partial<Client> = {}): void => {
  const { requests = 0, firstAt = at, lastAt = at } = of.use ?? {};
  of.use = {
    ...client,
    requests: requests + ('eventsGivenOut' in act ? 0 : 1),
    firstAt: at < firstAt ? at : firstAt,
    lastAt: at > lastAt ? at : lastAt,
  };
};

/** Whether it is the first beginning of a stream by this operation from there in an hour. */
const isNewStream = ({ begunIn }: KeyClient, act: KeyAct, hourNow: () => string): boolean => {
  if (!('operation' in act) || act.beginsStream !== true) return false;
  const hour = hourNow();
  if (begunIn[act.operation] === hour) return false;
  begunIn[act.operation] = hour;
  return true;
};

/** Counts what came from where, within bounds. */
export const clientCounter = (recordsClients: boolean, hourNow: () => string) => {
  let addresses = 0;

  const entryOf = ({ byAddress, others }: KeyClients, { address, reportedBy = '' }: Client) => {
    const name = `${address} ${reportedBy}`;
    const known = byAddress.get(name);
    if (known !== undefined) return { of: known, isNew: false };
    if (byAddress.size >= MAX_ADDRESSES_OF_DAY || addresses >= MAX_ADDRESSES)
      return { of: others, isNew: false };
    const of = unused();
    byAddress.set(name, of);
    addresses += 1;
    return { of, isNew: true };
  };

  return {
    begin: (): KeyClients => ({ byAddress: new Map(), others: unused(), last: undefined }),
    /** Whether the day has not seen this address, or not the beginning of such a stream from there in this hour. */
    add: (clients: KeyClients, at: string, act: KeyAct, client: Client | undefined): boolean => {
      if (!recordsClients) return isNewStream(clients.others, act, hourNow);
      const { others } = clients;
      // A service that verifies a key need not say where that came from.
      const { of, isNew } = client === undefined ? { of: others, isNew: false } : entryOf(clients, client);
      addTo(of, at, act, of === others ? {} : client);
      clients.last = client ?? clients.last;
      return isNewStream(of, act, hourNow) || isNew;
    },
    /** What is in no event yet, as the metadata of one says it, which from now on does. */
    take: ({ byAddress, others, last }: KeyClients) => {
      const clients = [...byAddress.values(), others].flatMap((of) => {
        const { use } = of;
        of.use = undefined;
        return use ?? [];
      });
      return clients.length === 0 ? {} : { client: last, clients };
    },
    forget: ({ byAddress }: KeyClients): void => void (addresses -= byAddress.size),
  };
};

export type ClientCounter = ReturnType<typeof clientCounter>;
