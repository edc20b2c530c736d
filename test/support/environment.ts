import { TestEnvironment } from 'jest-environment-node';
import { AsyncLocalStorage } from 'node:async_hooks';
import type { ChildProcess } from 'node:child_process';
import { accessSync, constants, statfsSync } from 'node:fs';

const used = new Set<AsyncLocalStorage<unknown>>();
const { run } = AsyncLocalStorage.prototype;
AsyncLocalStorage.prototype.run = function (this: AsyncLocalStorage<unknown>, ...args: unknown[]) {
  used.add(this);
  return Reflect.apply(run, this, args) as never;
};

const IN_MEMORY = '/dev/shm';
const ENOUGH_BYTES = 2 * 1024 ** 3;

/** Every commit of a test waits for the disk, which may be busy. In memory a killed process loses nothing either. */
const useMemoryForFiles = (): void => {
  try {
    accessSync(IN_MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(IN_MEMORY);
    if (bavail * bsize >= ENOUGH_BYTES) process.env['TMPDIR'] = IN_MEMORY;
  } catch {
    // Not available: files stay in the temporary folder.
  }
};
if (process.env['TMPDIR'] === undefined) useMemoryForFiles();

/**
 * Processes that run commands or servers for one test file after another: starting one and loading the program takes
 * longer than most commands, and is more than half of the start of a server.
 */
const commandHosts: ChildProcess[] = [];
const serviceHosts: ChildProcess[] = [];

/**
 * Jest runs each test file with its own AsyncLocalStorage and leaves it enabled. Up to Node 22, every promise is handed
 * to all that are enabled: the 70th file in a process would run at a tenth of its speed.
 */
export default class extends TestEnvironment {
  override async setup(): Promise<void> {
    await super.setup();
    Object.assign(this.global, { commandHosts, serviceHosts });
  }

  override async teardown(): Promise<void> {
    await super.teardown();
    for (const storage of used) storage.disable();
    used.clear();
  }
}
