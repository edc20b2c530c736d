import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { monotonicMs, pause } from '../../src/async/clock';

/**
 * A port in front of a server, and what can happen on the way: connections cut, bytes late, held back in both directions
 * (like a frozen server) or lost (like a network that drops packets), nobody listening. It knows nothing about the
 * content.
 */
export interface Gate {
  readonly port: number;
  cut(): void;
  /** Holds back everything, including what new connections send, until `thaw`. */
  freeze(): void;
  thaw(): void;
  /** From now on everything arrives this much later, in both directions. */
  delay(ms: number): void;
  /** From now on this is lost, on every connection, although both sides stay connected. */
  lose(what: Lost): void;
  shut(): Promise<void>;
  open(): Promise<void>;
  connections(): { readonly ever: number; readonly now: number };
}

type Lost = 'nothing' | 'answers' | 'everything';

interface Forwarding {
  readonly isLost: () => boolean;
  readonly delayMs: () => number;
}

const forward = (from: Socket, to: Socket, { isLost, delayMs }: Forwarding): void => {
  let late: Promise<void> | undefined;
  const after = (ms: number, work: () => void): void => {
    if (late === undefined && ms === 0) return work();
    const due = monotonicMs() + ms;
    const mine = (late ?? Promise.resolve())
      .then(() => pause(Math.max(0, due - monotonicMs())))
      .then(work)
      .finally(() => {
        if (late === mine) late = undefined;
      });
    late = mine;
  };
  from.on('data', (bytes) => {
    if (!isLost()) after(delayMs(), () => void to.write(bytes));
  });
  from.on('error', () => to.destroy());
  from.on('close', () => after(delayMs(), () => to.destroySoon()));
};

export const openGate = async (target: () => number, host = '127.0.0.1'): Promise<Gate> => {
  const pairs = new Set<readonly [Socket, Socket]>();
  let isFrozen = false;
  let lost: Lost = 'nothing';
  let lateMs = 0;
  let ever = 0;
  let listener: Server | undefined;

  const accept = (client: Socket): void => {
    const server = connect(target(), host);
    const pair = [client, server] as const;
    ever += 1;
    pairs.add(pair);
    client.on('close', () => pairs.delete(pair));
    const delayMs = (): number => lateMs;
    forward(client, server, { isLost: () => lost === 'everything', delayMs });
    forward(server, client, { isLost: () => lost !== 'nothing', delayMs });
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
    delay: (ms) => (lateMs = ms),
    lose: (what) => (lost = what),
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
