import type { Document } from 'mongodb';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { buildInfo, checkFields, COMMANDS, hello, type Command, type Self } from './commands';
import { failure, isFailure, nameOfCode } from './failure';
import { faultRules, type FaultAction, type Faults } from './faults';
import { openCursors } from './reading';
import { replicationOf, type Replication } from './replication';
import { countRoundTrips, type RoundTrips } from './round-trips';
import { memoryStore, type Store } from './store';
import { messageReader, replyTo, type Message } from './wire';
import type { Retried, Step } from './writing';

/**
 * A stand-in for MongoDB over its real wire protocol, in memory, that misbehaves on command. It refuses commands and
 * options that it does not know. By default it is the primary of a replica set.
 */
export interface MongoServer {
  readonly url: string;
  readonly port: number;
  readonly store: Store;
  readonly faults: Faults;
  readonly replication: Pick<Replication, 'hold' | 'release'>;
  readonly roundTrips: RoundTrips;
  /** How many connections are open. */
  readonly connections: number;
  readonly openCursors: number;
  /** Lets other connections interleave with the writes of a command, as on a real server. */
  interleave(isOn: boolean): void;
  /** Loses writes that no majority has, as when the primary fails, and cuts all connections. */
  rollBack(): void;
  /** It is no longer primary, until `stepUp`. */
  stepDown(): void;
  stepUp(): void;
  killCursors(): void;
  cutConnections(): void;
  /** Accepts and reads, but executes and answers nothing until `thaw`. */
  freeze(): void;
  thaw(): void;
  /** Stops listening; connections are cut. */
  leave(): Promise<void>;
  /** Listens on the same port again, with its data or without. */
  comeBack(how?: { readonly withData: boolean }): Promise<void>;
  close(): Promise<void>;
}

export interface MongoServerOptions {
  readonly topology?: 'replicaSet' | 'standalone';
  readonly port?: number;
  /** The version that it reports. */
  readonly wireVersion?: number;
  readonly version?: string;
}

/** A long command must not block others: drivers would consider the server dead. */
const MAX_HOLD_MS = 50;

const NOT_PRIMARY = 10107;
/** "Retryable writes" in the driver specifications: the server labels these errors for the driver. */
const RETRYABLE = new Set([6, 7, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436]);
const MONITORING = new Set([
  'hello',
  'ismaster',
  'isMaster',
  'ping',
  'buildInfo',
  'buildinfo',
  'endSessions',
]);

/** Ends the connection without a reply. */
const DROPPED = Symbol('dropped');
/** Sends no reply, and keeps the connection open. */
const SILENT = Symbol('silent');
type Outcome = Document | typeof DROPPED | typeof SILENT;

const namespaceOf = (name: string, body: Document, database: string): string => {
  const collection: unknown = name === 'getMore' ? body['collection'] : body[name];
  return typeof collection === 'string' ? `${database}.${collection}` : database;
};

const canonical = (name: string): string => (name === 'findandmodify' ? 'findAndModify' : name);

const errorReply = (error: unknown, isRetryable: boolean): Document => {
  if (!isFailure(error)) throw error;
  const { code, codeName, message, more } = error;
  const labels = isRetryable && RETRYABLE.has(code) ? { errorLabels: ['RetryableWriteError'] } : {};
  return { ok: 0, errmsg: message, code, codeName, ...more, ...labels };
};

export const startMongoServer = async (options: MongoServerOptions = {}): Promise<MongoServer> => {
  const { topology = 'replicaSet', wireVersion = 21, version = '7.0.0' } = options;
  const isStandalone = topology === 'standalone';
  const store = memoryStore();
  const cursors = openCursors();
  const faults = faultRules();
  const replication = replicationOf(store, { isStandalone });
  const roundTrips = countRoundTrips();
  const sockets = new Set<Socket>();
  const timers = new Set<NodeJS.Timeout>();
  /** The last retryable command of each session, as long as it may be retried. */
  let sessions = new Map<string, { readonly number: string; readonly done: Retried }>();
  let isPrimary = true;
  let election = 1;
  let isInterleaved = false;
  let lastTurn = 0;
  let frozen: Promise<void> | undefined;
  let thaw = (): void => undefined;
  let port = options.port ?? 0;
  let listener: Server | undefined;

  const self = (): Self => ({
    address: `127.0.0.1:${port}`,
    isStandalone,
    isPrimary,
    election,
    wireVersion,
    version,
  });

  const later = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(() => {
        timers.delete(timer);
        resolve();
      }, ms);
      timers.add(timer);
    });

  const retriedOf = ({ lsid, txnNumber }: Document): Retried => {
    if (txnNumber === undefined) return new Map();
    if (isStandalone)
      throw failure(20, 'Transaction numbers are only allowed on a replica set member or mongos');
    const session = Buffer.from((lsid as { id: { buffer: Uint8Array } }).id.buffer).toString('hex');
    const known = sessions.get(session);
    if (known?.number === String(txnNumber)) return known.done;
    const done: Retried = new Map();
    sessions.set(session, { number: String(txnNumber), done });
    return done;
  };

  const stepOf =
    (fault: FaultAction | undefined): Step =>
    async (write) => {
      if (isInterleaved || performance.now() - lastTurn > MAX_HOLD_MS) {
        await turn();
        lastTurn = performance.now();
      }
      if (fault?.type === 'drop' && fault.when === 'between' && write >= fault.writes)
        throw DROPPED as unknown;
      if (fault?.type === 'writeError' && write === fault.write)
        throw failure(fault.code, fault.message ?? nameOfCode(fault.code));
    };

  const commandOf = (name: string, body: Document, fault: FaultAction | undefined): Command => {
    const database = String(body['$db'] ?? 'test');
    const namespace = namespaceOf(name, body, database);
    return { name, body, database, namespace, store, cursors, step: stepOf(fault), done: retriedOf(body) };
  };

  const execute = async (name: string, body: Document, fault: FaultAction | undefined): Promise<Outcome> => {
    const known = COMMANDS[name];
    if (known === undefined) throw failure(59, `no such command: '${name}'`);
    if (body['autocommit'] !== undefined) throw failure(20, 'This server has no transactions.');
    checkFields(name, body);
    if (!isPrimary && known.kind === 'write') throw failure(NOT_PRIMARY, 'not primary');
    if (!isPrimary && known.kind === 'read') throw failure(13435, 'not primary and secondaryOk=false');
    const executed = fault?.type === 'ordered' ? { ...body, ordered: true } : body;
    const reply = await known.run(commandOf(name, executed, fault));
    if (known.kind !== 'write') return reply;
    const acknowledged = await replication.acknowledge(body['writeConcern'] as Document | undefined);
    if (acknowledged === 'lost') return DROPPED;
    return { ...reply, ...acknowledged };
  };

  /** What a fault does before the command is executed; undefined if it is to be executed. */
  const faultBefore = async (fault: FaultAction | undefined): Promise<Outcome | undefined> => {
    if (fault?.type === 'slow') await later(fault.ms);
    if (fault?.type === 'drop' && fault.when === 'before') return DROPPED;
    if (fault?.type === 'hang' && fault.when === 'before') return SILENT;
    if (fault?.type === 'error') throw failure(fault.code, fault.message ?? nameOfCode(fault.code));
    return undefined;
  };

  const faultAfter = (fault: FaultAction | undefined, outcome: Outcome, isRetryable: boolean): Outcome => {
    if (typeof outcome === 'symbol' || fault === undefined) return outcome;
    if (fault.type === 'drop') return DROPPED;
    if (fault.type === 'hang') return SILENT;
    if (fault.type !== 'writeConcernError') return outcome;
    const { code, message = nameOfCode(code) } = fault;
    const labels = isRetryable && RETRYABLE.has(code) ? { errorLabels: ['RetryableWriteError'] } : {};
    return {
      ...outcome,
      writeConcernError: { code, codeName: nameOfCode(code), errmsg: message },
      ...labels,
    };
  };

  const answer = async (name: string, body: Document): Promise<Outcome> => {
    if (name === 'hello') return hello(self(), false);
    if (name === 'ismaster' || name === 'isMaster') return hello(self(), true);
    if (name === 'buildInfo' || name === 'buildinfo') return buildInfo(self());
    if (name.startsWith('sasl')) throw failure(18, 'Authentication failed.');
    const collection = namespaceOf(name, body, '').slice(1) || undefined;
    const fault = faults.next(name, collection, body);
    const end = MONITORING.has(name) ? undefined : roundTrips.begin(name, collection);
    try {
      const faulted = await faultBefore(fault);
      if (faulted !== undefined) return faulted;
      return faultAfter(fault, await execute(name, body, fault), body['txnNumber'] !== undefined);
    } finally {
      end?.();
    }
  };

  const respond = async (socket: Socket, message: Message): Promise<void> => {
    const { body } = message;
    const name = canonical(Object.keys(body)[0] ?? '');
    await frozen;
    const outcome = await answer(name, body).catch((error: unknown) =>
      error === DROPPED ? DROPPED : errorReply(error, body['txnNumber'] !== undefined),
    );
    if (outcome === DROPPED) return void socket.resetAndDestroy();
    await frozen;
    if (outcome === SILENT || message.noReply || socket.destroyed) return;
    socket.write(replyTo(message, outcome));
  };

  const accept = (socket: Socket): void => {
    const read = messageReader();
    let before = Promise.resolve();
    const end = (): void => {
      sockets.delete(socket);
      socket.destroy();
    };
    sockets.add(socket);
    socket.setNoDelay(true).on('error', end).on('close', end);
    socket.on('data', (bytes) => {
      try {
        for (const message of read(bytes))
          before = before
            .then(() => respond(socket, message))
            .catch((error: unknown) => {
              console.error(error);
              socket.destroy();
            });
      } catch (error) {
        console.error(error);
        socket.destroy();
      }
    });
  };

  const listen = async (): Promise<void> => {
    listener = createServer(accept).listen(port, '127.0.0.1');
    await once(listener, 'listening');
    port = (listener.address() as AddressInfo).port;
  };
  await listen();

  const cutConnections = (): void => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  const leave = async (): Promise<void> => {
    if (listener === undefined) return;
    const closing = once(listener, 'close');
    listener.close();
    listener = undefined;
    cutConnections();
    await closing;
  };

  return {
    url: `mongodb://127.0.0.1:${port}/`,
    port,
    store,
    faults,
    replication,
    roundTrips,
    get connections() {
      return sockets.size;
    },
    get openCursors() {
      return cursors.size;
    },
    interleave: (isOn) => (isInterleaved = isOn),
    rollBack: () => {
      replication.rollBack();
      sessions = new Map();
      cursors.killAll();
      cutConnections();
    },
    stepDown: () => (isPrimary = false),
    stepUp: () => {
      isPrimary = true;
      election += 1;
    },
    killCursors: () => cursors.killAll(),
    cutConnections,
    freeze: () => {
      frozen ??= new Promise((resolve) => (thaw = resolve));
    },
    thaw: () => {
      frozen = undefined;
      thaw();
    },
    leave,
    comeBack: async ({ withData } = { withData: true }) => {
      cursors.killAll();
      if (!withData) {
        store.clear();
        sessions = new Map();
      }
      await listen();
    },
    close: async () => {
      thaw();
      for (const timer of timers) clearTimeout(timer);
      await leave();
    },
  };
};
