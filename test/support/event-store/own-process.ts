import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** The stand-in for an event store, in a process that ends with this one. */
export const standInProcess = async (): Promise<{
  readonly url: string;
  readonly process: ChildProcess;
  close(): void;
}> => {
  const child = fork(join(__dirname, 'stand-in-process.js'), { execArgv: [] });
  const [url] = (await once(child, 'message')) as [string];
  return { url, process: child, close: () => child.disconnect() };
};
