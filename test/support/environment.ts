import { TestEnvironment } from 'jest-environment-node';
import { AsyncLocalStorage } from 'node:async_hooks';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { standInProcess } from './event-store/own-process';
import { useMemoryForFiles } from './files-in-memory';

const used = new Set<AsyncLocalStorage<unknown>>();
const { run } = AsyncLocalStorage.prototype;
AsyncLocalStorage.prototype.run = function (this: AsyncLocalStorage<unknown>, ...args: unknown[]) {
  used.add(this);
  return Reflect.apply(run, this, args) as never;
};

useMemoryForFiles();

export default class extends TestEnvironment {
  #standIn: ChildProcess | undefined;

  readonly #profile: unknown;

  constructor(...given: ConstructorParameters<typeof TestEnvironment>) {
    super(...given);
    this.#profile = given[0].projectConfig.testEnvironmentOptions['profile'];
  }

  /** In the clustered profile and without EVENTSTORE_URL, each test file has its own stand-in for the event store. */
  override async setup(): Promise<void> {
    await super.setup();
    if (this.#profile !== 'clustered') return;
    this.global.process.env['PROFILE'] = 'clustered';
    if (process.env['TEST_EVENTSTORE_URL'] !== undefined) return;
    const { url, process: standIn } = await standInProcess();
    this.#standIn = standIn;
    this.global.process.env['TEST_EVENTSTORE_URL'] = url;
  }

  /**
   * Jest runs each test file with its own AsyncLocalStorage and leaves it enabled. Up to Node 22, every promise is
   * handed to all that are enabled: the 70th file in a process would run at a tenth of its speed.
   */
  override async teardown(): Promise<void> {
    await super.teardown();
    for (const storage of used) storage.disable();
    used.clear();
    if (this.#standIn === undefined) return;
    const exited = once(this.#standIn, 'exit');
    this.#standIn.kill('SIGKILL');
    await exited;
  }
}
