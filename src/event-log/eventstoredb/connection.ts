import { EventStoreDBClient } from '@eventstore/db-client';
import { monotonicMs, pause } from '../../clock';
import { appendStream, type AppendStream } from './append-stream';
import { insidesOf } from './client-insides';
import { unparsable } from './connection-string';

/** The one client of this process, replaced by another when it seems broken. */
export interface Connection {
  client(): EventStoreDBClient;
  serverVersion(): Promise<string>;
  /** The same client, with its stream of appends. */
  current(): { readonly client: EventStoreDBClient; readonly appends: AppendStream };
  /** This client did not answer: later calls get another one. Calls under way may go on for a while. */
  renew(broken: EventStoreDBClient): void;
  /** Calls back at every renewal, until the returned function is called. */
  onRenewed(listener: () => void): () => void;
  isClosed(): boolean;
  /** It was shut down: whatever it was reading has ended as if that were all. */
  isShut(client: EventStoreDBClient): boolean;
  close(): Promise<void>;
}

/** Calls under way on a client that was replaced have this long to end by themselves. */
const RETIRE_MS = 6_000;
/** A server that hangs must not cause a connection per call. */
const RENEW_EVERY_MS = 2_000;
/** The package's `dispose` may never return. */
const DISPOSE_MS = 500;

/** The package's own. */
const KEEP_ALIVE_MS = 10_000;
const NUMBERS = 1_000;
/** Weeks, and still within what timers can hold. */
const NEVER_MS = 2_000_000_000;

interface Owned {
  readonly client: EventStoreDBClient;
  readonly appends: AppendStream;
  shut(): Promise<void>;
}

const make = (url: string): EventStoreDBClient => {
  try {
    return EventStoreDBClient.connectionString(url);
  } catch {
    throw unparsable();
  }
};

/**
 * gRPC gives clients with the same options the same connection, even a dead one. A millisecond more makes it another. The
 * package turns a timeout that is switched off into one that no timer can hold, so that it expires at once.
 */
const numbered = (url: string, number: number): string => {
  const given = /([?&])keepAliveTimeout=(-?\d+)/i.exec(url);
  if (given === null)
    return `${url}${url.includes('?') ? '&' : '?'}keepAliveTimeout=${KEEP_ALIVE_MS + number}`;
  const ms = Number(given[2]);
  return url.replace(given[0], `${given[1]}keepAliveTimeout=${(ms < 0 ? NEVER_MS : ms) + number}`);
};

const own = (url: string): Owned => {
  const client = make(url);
  const insides = insidesOf(client);
  const { handleError, createChannel } = insides;
  let channel: { close(): void } | undefined;
  let isShut = false;
  Object.assign(insides, {
    // Nobody awaits this one, so its rejection, when no server was found, would be unhandled.
    handleError: (...parts) => handleError(...parts).catch(() => undefined),
    createChannel: async () => {
      channel = await createChannel();
      if (isShut) channel.close();
      return channel;
    },
  } satisfies Partial<typeof insides>);
  const appends = appendStream(client);
  return {
    client,
    appends,
    shut: async () => {
      isShut = true;
      appends.close();
      const disposed = new AbortController();
      void client.dispose().finally(() => disposed.abort());
      await pause(DISPOSE_MS, disposed.signal);
      channel?.close();
    },
  };
};

export const connectTo = (url: string): Connection => {
  let number = 0;
  let current = own(numbered(url, number));
  let renewedAt = -Infinity;
  let closed = false;
  const listeners = new Set<() => void>();
  const retired = new Map<Owned, NodeJS.Timeout>();
  const given = new WeakSet<EventStoreDBClient>();

  const shut = (one: Owned): Promise<void> => {
    given.add(one.client);
    clearTimeout(retired.get(one));
    retired.delete(one);
    return one.shut();
  };
  const retire = (one: Owned): void => {
    const timer = setTimeout(() => void shut(one), RETIRE_MS);
    retired.set(one, timer.unref());
  };

  return {
    client: () => current.client,
    serverVersion: async () => (await insidesOf(current.client).capabilities).serverVersion,
    current: () => current,
    renew: (broken) => {
      const now = monotonicMs();
      if (closed || broken !== current.client || now - renewedAt < RENEW_EVERY_MS) return;
      renewedAt = now;
      retire(current);
      number = (number + 1) % NUMBERS;
      current = own(numbered(url, number));
      for (const listener of listeners) listener();
    },
    onRenewed: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    isClosed: () => closed,
    isShut: (client) => given.has(client),
    close: async () => {
      if (closed) return;
      closed = true;
      await Promise.all([...retired.keys(), current].map(shut));
    },
  };
};
