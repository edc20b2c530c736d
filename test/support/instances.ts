import { openApp, type App } from '../../src/app/app';
import { readConfiguration } from '../../src/configuration';
import type { Decide } from '../../src/domain/tenant';
import type { Position } from '../../src/event-log/event-log';
import { standInProcess } from './event-store/own-process';
import { freshFolder } from './folders';
import { startProxy, type MongoProxy } from './mongodb/proxy';
import { mongodbBehindProxy, type DisturbedMongodb } from './mongodb-under-test';
import { operatorOf, type NewTenant } from './operator-of';
import { commandProcess, serviceProcess, type Finished, type ServiceProcess } from './service';

export interface Instances {
  readonly mongo: Omit<DisturbedMongodb, 'url'>;
  /** In front of the MongoDB of each instance alone. */
  readonly proxies: readonly MongoProxy[];
  readonly running: readonly ServiceProcess[];
  /** The same stores in this process, which does not project: an operator beside the instances. */
  readonly app: App;
  restart(at: number): Promise<void>;
  replaceKilled(at: number): Promise<void>;
  projecting(): Promise<number>;
  write(tenantId: string, decide: Decide): Promise<Position>;
  newTenant(): Promise<NewTenant>;
  run(...args: readonly string[]): Promise<Finished>;
  close(): Promise<void>;
}

type Environment = Readonly<Record<string, string>>;

const openStores = async () => {
  const { url: MONGODB_URL, ...mongo } = await mongodbBehindProxy();
  const eventStore = await standInProcess();
  return {
    mongo,
    close: eventStore.close,
    env: { MONGODB_URL, EVENTSTORE_URL: eventStore.url, STREAM_PREFIX: '' },
  };
};

const opened = (env: Environment): Promise<App> =>
  openApp(readConfiguration({ DATA_DIR: freshFolder(), ...env }), () => undefined);

const proxyFor = async (mongodb: string) => {
  const { hostname, port, pathname, search } = new URL(mongodb);
  const proxy = await startProxy({ host: hostname, port: Number(port) });
  return { ...proxy, url: `mongodb://127.0.0.1:${proxy.port}${pathname}${search}` };
};

export const startInstances = async (count: number, more: Environment = {}): Promise<Instances> => {
  const { mongo, env: stores, close } = await openStores();
  const env = { ...stores, DEMO: 'false', ...more };
  const proxies = await Promise.all(Array.from({ length: count }, () => proxyFor(stores.MONGODB_URL)));
  const started = (at: number): Promise<ServiceProcess> =>
    serviceProcess({ ...env, MONGODB_URL: proxies[at]!.url });
  const running = [await started(0)];
  running.push(...(await Promise.all(Array.from({ length: count - 1 }, (_, at) => started(at + 1)))));
  const app = await opened(env);

  const { write, newTenant, newOwner } = operatorOf(app);

  return {
    mongo,
    proxies,
    running,
    app,
    write,
    restart: async (at) => {
      await running[at]!.stop();
      running[at] = await started(at);
    },
    replaceKilled: async (at) => {
      running[at] = await started(at);
    },
    projecting: async () => {
      const holder = (await app.readModels.lease?.holder()) ?? '';
      return running.findIndex(({ process: { pid } }) => holder.split(' ').includes(String(pid)));
    },
    newTenant: async () => {
      const tenantId = await newTenant();
      return { tenantId, ...(await newOwner(tenantId)) };
    },
    run: (...args) => commandProcess(args, { DATA_DIR: freshFolder(), ...env }),
    close: async () => {
      await app.close();
      await Promise.all(running.map((service) => service.stop()));
      await Promise.all(proxies.map((proxy) => proxy.close()));
      close();
    },
  };
};
