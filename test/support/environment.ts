import { TestEnvironment } from 'jest-environment-node';
import { AsyncLocalStorage } from 'node:async_hooks';
import { useMemoryForFiles } from './files-in-memory';

const used = new Set<AsyncLocalStorage<unknown>>();
const { run } = AsyncLocalStorage.prototype;
AsyncLocalStorage.prototype.run = function (this: AsyncLocalStorage<unknown>, ...args: unknown[]) {
  used.add(this);
  return Reflect.apply(run, this, args) as never;
};

useMemoryForFiles();

/**
 * Jest runs each test file with its own AsyncLocalStorage and leaves it enabled. Up to Node 22, every promise is handed
 * to all that are enabled: the 70th file in a process would run at a tenth of its speed.
 */
export default class extends TestEnvironment {
  override async teardown(): Promise<void> {
    await super.teardown();
    for (const storage of used) storage.disable();
    used.clear();
  }
}
