import { EventStoreDBClient } from '@eventstore/db-client';
import { monotonicMs, pause } from '../../async/clock';
import { fault, type Fault } from '../../fault';
import { TIMES } from '../../times';
import { appendStream, internalsOf, type AppendStream } from './append-stream';

const invalid = (why: string): Fault =>
  fault(
    'configuration_invalid',
    `EVENTSTORE_URL is not valid: ${why}. For example: EVENTSTORE_URL=esdb://127.0.0.1:2113?tls=false`,
  );

/** Checked before the client package sees it, because that prints what it cannot parse, including the password. */
const FORM = /^esdb(?:\+discover)?:\/\/(?:[^:@/?#\s]+:[^:@/?#\s]+@)?([^@/?#\s]+)\/?(?:\?[^?#\s]*)?$/;

const FORM_TEXT = 'esdb://[user:password@]host:port[,host:port…][?option=value&…]';

/** The servers in a connection string, without user and password, so they may be shown. */
export const serversOf = (url: string): string => {
  const match = FORM.exec(url.trim());
  if (match === null) throw invalid(`it must be ${FORM_TEXT}, with special characters percent-encoded`);
  return match[1] as string;
};

/**
 * So that a frozen leader and dead candidates are noticed within seconds: the package's defaults take up to 20 s. gRPC
 * reuses a connection for clients with the same options, even a dead one, so each client has a timeout of its own. Of
 * options that come twice, the last counts.
 */
const withTimeouts = (url: string, client: number): string => {
  const [servers = '', options = ''] = url.trim().split('?');
  const given = options.split('&').filter((option) => option !== '');
  const all = ['keepAliveInterval=2000', 'gossipTimeout=1', ...given, `keepAliveTimeout=${2_000 + client}`];
  return `${servers}?${all.join('&')}`;
};

/** Client numbers wrap around here. */
const CLIENT_NUMBERS = 1_000;

interface OwnedClient {
  readonly client: EventStoreDBClient;
  readonly appends: AppendStream;
  shut(): Promise<void>;
}

const createClient = (url: string): EventStoreDBClient => {
  const { warn } = console;
  try {
    // The package would print that this keep-alive interval is shorter than it recommends.
    Object.assign(console, { warn: () => undefined });
    return EventStoreDBClient.connectionString(url);
  } catch {
    // Its own message quotes the text, which may contain a password.
    throw invalid('the client cannot parse it, or a file that it names does not exist');
  } finally {
    Object.assign(console, { warn });
  }
};

const ownClient = (url: string): OwnedClient => {
  const client = createClient(url);
  const internals = internalsOf(client);
  const { handleError, createChannel } = internals;
  let channel: { close(): void } | undefined;
  let isShut = false;
  Object.assign(internals, {
    // The package does not await this, so if no server is found, its rejection would be unhandled.
    handleError: (...error) => handleError(...error).catch(() => undefined),
    createChannel: async () => {
      channel = await createChannel();
      if (isShut) channel.close();
      return channel;
    },
  } satisfies Partial<typeof internals>);
  const appends = appendStream(client);
  return {
    client,
    appends,
    shut: async () => {
      isShut = true;
      appends.close();
      const disposed = new AbortController();
      void client.dispose().finally(() => disposed.abort());
      // The package's `dispose` may never return.
      await pause(TIMES.retryMs, disposed.signal);
      channel?.close();
    },
  };
};

export const connectTo = (url: string) => {
  let number = 0;
  let current = ownClient(withTimeouts(url, number));
  let renewedAt = -Infinity;
  let closed = false;
  const listeners = new Set<() => void>();
  const retired = new Map<OwnedClient, NodeJS.Timeout>();
  const closedClients = new WeakSet<EventStoreDBClient>();

  const shut = (owned: OwnedClient): Promise<void> => {
    closedClients.add(owned.client);
    clearTimeout(retired.get(owned));
    retired.delete(owned);
    return owned.shut();
  };
  const retire = (owned: OwnedClient): void => {
    const timer = setTimeout(() => void shut(owned), TIMES.backgroundMs);
    retired.set(owned, timer.unref());
  };

  return {
    client: (): EventStoreDBClient => current.client,
    /** The same client with its append stream. */
    current: (): Pick<OwnedClient, 'client' | 'appends'> => current,
    /** Replaces a client that did not answer. Its calls in progress may still finish for a while. */
    renew: (broken: EventStoreDBClient): void => {
      const now = monotonicMs();
      // A hanging server must not cause a new connection per call.
      if (closed || broken !== current.client || now - renewedAt < TIMES.silentReadMs) return;
      renewedAt = now;
      retire(current);
      number = (number + 1) % CLIENT_NUMBERS;
      current = ownClient(withTimeouts(url, number));
      for (const listener of listeners) listener();
    },
    /** Calls the listener at every renewal. Returns a function that removes it. */
    onRenewed: (listener: () => void) => {
      listeners.add(listener);
      return (): void => void listeners.delete(listener);
    },
    isClosed: () => closed,
    /** After a client is shut down, its reads end as if they were complete. */
    isShut: (client: EventStoreDBClient) => closedClients.has(client),
    close: async (): Promise<void> => {
      if (closed) return;
      closed = true;
      await Promise.all([...retired.keys(), current].map(shut));
    },
  };
};

export type Connection = ReturnType<typeof connectTo>;
