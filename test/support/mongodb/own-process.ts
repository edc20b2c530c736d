import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Order } from './server-process';

/** The stand-in in its own process, for stories with several real processes. */
export interface MongoProcess {
  readonly url: string;
  readonly pid: number;
  tell(order: Order): Promise<unknown>;
  close(): Promise<void>;
}

export const startMongoProcess = async (): Promise<MongoProcess> => {
  const child = fork(join(__dirname, 'server-process.js'), { execArgv: [], serialization: 'advanced' });
  const [{ url }] = (await once(child, 'message')) as [{ url: string }];
  const waiting = new Map<number, (result: unknown) => void>();
  let last = 0;
  child.on('message', ({ id, result }: { id: number; result: unknown }) => {
    waiting.get(id)?.(result);
    waiting.delete(id);
  });
  return {
    url,
    pid: child.pid!,
    tell: (order) =>
      new Promise((resolve) => {
        waiting.set((last += 1), resolve);
        child.send({ id: last, order });
      }),
    close: async () => {
      const exited = once(child, 'exit');
      child.disconnect();
      await exited;
    },
  };
};
