import { AsyncResource } from 'node:async_hooks';

/**
 * The work, to be run later in the asynchronous context of this call, which may hold the trace of a request. Not
 * `AsyncResource.bind`, which costs several times as much.
 */
export const inThisContext = (work: () => void): (() => void) => {
  const caller = new AsyncResource('deferred');
  return () => caller.runInAsyncScope(work);
};

const background = new AsyncResource('background');

/** Starts work for many requests outside the context of the one that happens to start it. */
export const inBackground = <T>(work: () => T): T => background.runInAsyncScope(work);
