import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/**
 * A port in front of a server, and what can happen on the way: connections cut, bytes held back in both directions
 * (like a frozen server, or a network that drops packets), nobody listening. It knows nothing about the content.
 */
export interface Gate {
  readonly port: number;
  /** Cuts every connection at once. */
  cut(): void;
  /** Holds back everything, including new connections, until `thaw`. */
  freeze(): void;
  thaw(): void;
  /** Stops listening and cuts the connections. */
  shut(): Promise<void>;
  open(): Promise<void>;
  /** How many connections there have been, and how many are open. */
  connections(): { readonly ever: number; readonly now: number };
}

export const openGate = async (target: () => number, host = '127.0.0.1'): Promise<Gate> => {
  const pairs = new Set<readonly [Socket, Socket]>();
  let isFrozen = false;
  let ever = 0;
  let listener: Server | undefined;

  const accept = (client: Socket): void => {
    const server = connect(target(), host);
    const pair = [client, server] as const;
    const end = (): void => {
      pairs.delete(pair);
      client.destroy();
      server.destroy();
    };
    ever += 1;
    pairs.add(pair);
    for (const socket of pair) socket.setNoDelay(true).on('error', end).on('close', end);
    client.on('data', (bytes) => server.write(bytes));
    server.on('data', (bytes) => client.write(bytes));
    if (isFrozen) for (const socket of pair) socket.pause();
  };

  const listen = async (port: number): Promise<number> => {
    listener = createServer(accept).listen(port, host);
    await once(listener, 'listening');
    return (listener.address() as AddressInfo).port;
  };
  const port = await listen(0);

  const cut = (): void => {
    for (const [client, server] of pairs) {
      client.resetAndDestroy();
      server.destroy();
    }
  };

  return {
    port,
    cut,
    freeze: () => {
      isFrozen = true;
      for (const socket of [...pairs].flat()) socket.pause();
    },
    thaw: () => {
      isFrozen = false;
      for (const socket of [...pairs].flat()) socket.resume();
    },
    shut: async () => {
      if (listener === undefined) return;
      const closing = once(listener, 'close');
      listener.close();
      listener = undefined;
      cut();
      await closing;
    },
    open: async () => {
      if (listener === undefined) await listen(port);
    },
    connections: () => ({ ever, now: pairs.size }),
  };
};
