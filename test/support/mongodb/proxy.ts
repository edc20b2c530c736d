import type { Document } from 'mongodb';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { faultRules, MONITORING, type FaultAction, type Faults } from './faults';
import { countRoundTrips, type RoundTrips } from './round-trips';
import { messageReader, replyTo, type Message } from './wire';

export interface MongoProxy {
  readonly port: number;
  readonly faults: Faults;
  readonly roundTrips: RoundTrips;
  close(): Promise<void>;
}

interface Named {
  readonly name: string;
  readonly collection: string;
}

const namedIn = (body: Document): Named => {
  const [name = ''] = Object.keys(body);
  const collection: unknown = name === 'getMore' ? body['collection'] : body[name];
  return {
    name: name === 'findandmodify' ? 'findAndModify' : name,
    collection: typeof collection === 'string' ? collection : '',
  };
};

interface Pending {
  readonly end: () => void;
  readonly action: FaultAction | undefined;
}

export const startProxy = async (target: {
  readonly host: string;
  readonly port: number;
}): Promise<MongoProxy> => {
  const faults = faultRules();
  const roundTrips = countRoundTrips();
  const sockets = new Set<Socket>();

  const serve = (client: Socket): void => {
    const server = connect(target);
    const pending = new Map<number, Pending>();
    const cut = (): void => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', cut);
      socket.on('close', () => {
        sockets.delete(socket);
        cut();
      });
    }

    const deliver = (message: Message, action: FaultAction | undefined): void => {
      if (action?.type === 'error') {
        const { code } = action;
        return void client.write(replyTo(message, { ok: 0, code, errmsg: 'as requested' }));
      }
      if (action?.type === 'drop' && action.when === 'before') return cut();
      if (action?.type === 'hang') return;
      if (action?.type !== 'slow' || action.when === 'after') return void server.write(message.bytes);
      setTimeout(() => server.write(message.bytes), action.ms);
    };

    const forward = (message: Message): void => {
      const { name, collection } = namedIn(message.body);
      if (MONITORING.has(name)) return void server.write(message.bytes);
      const { action, first } = faults.next(name, collection, message.body) ?? {};
      const end = roundTrips.begin(name, collection, message.body);
      pending.set(message.requestId, { end, action });
      if (first === undefined) deliver(message, action);
      else void first().then(() => deliver(message, action), cut);
    };

    const takeBack = (reply: Message): void => {
      const { action } = pending.get(reply.responseTo) ?? {};
      if (action?.type !== 'slow' || action.when !== 'after') return giveBack(reply);
      setTimeout(() => giveBack(reply), action.ms);
    };

    const giveBack = (reply: Message): void => {
      const { end, action } = pending.get(reply.responseTo) ?? {};
      pending.delete(reply.responseTo);
      end?.();
      if (action?.type === 'drop') return cut();
      client.write(reply.bytes);
    };

    const [commands, replies] = [messageReader(), messageReader()];
    client.on('data', (bytes) => commands(bytes).forEach(forward));
    server.on('data', (bytes) => replies(bytes).forEach(takeBack));
  };

  const listener = createServer(serve).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return {
    port: (listener.address() as AddressInfo).port,
    faults,
    roundTrips,
    close: async () => {
      const closed = once(listener, 'close');
      listener.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
};
