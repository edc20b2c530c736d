import type { MongoMemoryServer } from 'mongodb-memory-server-core';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

export interface ReplicaSet {
  readonly url: string;
  readonly members: readonly Member[];
  close(): Promise<void>;
}

export interface Member {
  readonly port: number;
  readonly pid: number;
  kill(): Promise<void>;
  restart(): Promise<void>;
}

const CACHE_GB = '0.25';
/** On a busy machine it takes many times as long as usual. */
const LAUNCH_MS = 60_000;

const memberOf = (server: MongoMemoryServer): Member => {
  const mongod = (): ChildProcess => server.instanceInfo!.instance.mongodProcess!;
  return {
    get port() {
      return server.instanceInfo!.port;
    },
    get pid() {
      return mongod().pid!;
    },
    kill: async () => {
      const exited = once(mongod(), 'exit');
      mongod().kill('SIGKILL');
      await exited;
    },
    restart: async () => {
      await server.stop({ doCleanup: false });
      await server.start(true);
    },
  };
};

/** Not in Jest: there the driver that it uses sends an invalid handshake. */
export const startReplicaSet = async (mongod: string, count: number, electionTimeoutMillis = 1_000) => {
  process.env['MONGOMS_SYSTEM_BINARY_VERSION_CHECK'] = 'false';
  const { MongoMemoryReplSet } =
    require('mongodb-memory-server-core') as typeof import('mongodb-memory-server-core');
  const set = await MongoMemoryReplSet.create({
    binary: { systemBinary: mongod },
    instanceOpts: Array.from({ length: count }, () => ({ launchTimeout: LAUNCH_MS })),
    replSet: {
      count,
      ip: '127.0.0.1',
      storageEngine: 'wiredTiger',
      configSettings: { electionTimeoutMillis },
      // Lets tests stop the server at certain points.
      args: ['--wiredTigerCacheSizeGB', CACHE_GB, '--setParameter', 'enableTestCommands=1'],
    },
  });
  return {
    url: set.getUri(),
    members: set.servers.map(memberOf),
    close: async () => {
      await set.stop();
    },
  };
};
