import { setTimeout as later } from 'node:timers/promises';

/** For processes that run the program several times for tests, as if each time were the first. */

/** What a process that runs servers is asked. */
export interface HostedService {
  readonly env: Readonly<Record<string, string>>;
}

/** Such a process writes it to both outputs after the last line of a server. */
export const END = '\0';

export const useEnvironment = (env: Readonly<Record<string, string>>): void => {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
};

/** Removes the listeners that are added from now on. */
export const listenersSince = (emitter: NodeJS.EventEmitter): (() => void) => {
  const before = new Map(emitter.eventNames().map((name) => [name, new Set(emitter.rawListeners(name))]));
  return () => {
    for (const name of emitter.eventNames())
      for (const listener of emitter.rawListeners(name))
        if (before.get(name)?.has(listener) !== true) emitter.off(name, listener as () => void);
  };
};

/** Whether nothing more keeps the process alive than the `idle` resources that did so before. */
export const isIdleWithin = async (idle: number, withinMs: number): Promise<boolean> => {
  const end = performance.now() + withinMs;
  while (process.getActiveResourcesInfo().length > idle) {
    if (performance.now() > end) return false;
    await later(1, undefined, { ref: false });
  }
  return true;
};
