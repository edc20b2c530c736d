import { join } from 'node:path';
import { startThread, type Failure, type Thread } from '../async/thread';
import type { Configuration } from '../configuration';
import type { ParkedTenant } from '../projecting/fold-batch';
import type { Shown } from '../projecting/project';
import { TIMES } from '../times';

/** Asks the thread (`worker.ts`) to begin to project. Every other request is an append to the embedded log. */
export const PROJECT = 'project';

export type WorkerReport =
  /** The live set shows everything up to here. Reported before the appends of the same turn are answered. */
  | { readonly type: 'shown'; readonly shown: Shown }
  /** How much of the log a first build has read, from 0 to 1. */
  | { readonly type: 'building'; readonly progress: number }
  | { readonly type: 'parked'; readonly tenant: ParkedTenant }
  | { readonly type: 'error'; readonly what: string; readonly failure: Failure };

/** The thread of a server that projects, and in the embedded profile also appends: whoever appends projects. */
export interface WorkerThread {
  readonly appender: Thread;
  project(): Promise<void>;
  close(): Promise<void>;
}

/** A larger young generation would not be faster, only stay in memory. The old generation never needs this much. */
const HEAP = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 320 };

/** `onDeath` is called if it has died: the process must end. */
export const workerThread = (
  configuration: Configuration,
  onReport: (report: WorkerReport) => void,
  onDeath: (error: Error) => void,
): WorkerThread => {
  const thread = startThread(join(__dirname, 'worker.js'), configuration, { heap: HEAP, onReport, onDeath });
  return {
    // It is closed with the thread.
    appender: { call: thread.call, close: async () => undefined },
    project: () => thread.call(PROJECT, TIMES.backgroundMs),
    close: thread.close,
  };
};
