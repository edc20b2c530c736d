import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/**
 * A port in front of a server, and what can happen on the way: connections cut, bytes held back in both directions (like a
 * frozen server), answers lost (like in a network that drops packets), nobody listening. It knows nothing about the
 * content.
 */
export interface Gate {
  readonly port: number;
  cut(): void;
  /** Holds back everything, including what new connections send, until `thaw`. */
  freeze(): void;
  thaw(): void;
  /** From now on answers are lost on every connection, or no longer, although both sides stay connected. */
  loseAnswers(areLost: boolean): void;
  shut(): Promise<void>;
  open(): Promise<void>;
  connections(): { readonly ever: number; readonly now: number };
}

const forward = (from: Socket, to: Socket, isLost: () => boolean): void => {
  from.on('data', (bytes) => {
    if (!isLost()) to.write(bytes);
  });
  from.on('error', () => to.destroy());
  from.on('close', () => to.destroySoon());
};

export const openGate = async (target: () => number, host = '127.0.0.1'): Promise<Gate> => {
  const pairs = new Set<readonly [Socket, Socket]>();
  let isFrozen = false;
  let areAnswersLost = false;
  let ever = 0;
  let listener: Server | undefined;

  const accept = (client: Socket): void => {
    const server = connect(target(), host);
    const pair = [client, server] as const;
    ever += 1;
    pairs.add(pair);
    client.on('close', () => pairs.delete(pair));
    forward(client, server, () => false);
    forward(server, client, () => areAnswersLost);
    for (const socket of pair) {
      socket.setNoDelay(true);
      if (isFrozen) socket.pause();
    }
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
    loseAnswers: (areLost) => (areAnswersLost = areLost),
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
