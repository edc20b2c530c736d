import { join } from 'node:path';
import { startThread, type Failure, type Thread } from '../async/thread';
import type { Configuration } from '../configuration';
import type { Position } from '../event-log/event-log';
import type { Show } from '../projecting/show-tenants';
import type { ParkedTenant } from '../read-models/read-models';
import { TIMES } from '../times';

/** Asks the thread (`worker.ts`) to begin to project: as a server does, or only what it is asked to show. */
export const PROJECT = 'project';
export const SHOW_ONLY = 'show only';

/** Asks it whether a tenant is shown up to a position. Every other request is an append to the embedded log. */
export interface ShowRequest {
  readonly show: string;
  readonly position: Position;
  readonly withinMs: number;
}

export type WorkerReport =
  /** How much of the log a first build has read, from 0 to 1. */
  | { readonly type: 'building'; readonly progress: number }
  | { readonly type: 'parked'; readonly tenant: ParkedTenant }
  | { readonly type: 'error'; readonly what: string; readonly failure: Failure };

/** The thread of a server that projects, and in the embedded profile also appends: whoever appends projects. */
export interface WorkerThread {
  readonly appender: Thread;
  project(how?: typeof PROJECT | typeof SHOW_ONLY): Promise<void>;
  readonly show: Show;
  close(): Promise<void>;
}

/** A smaller young generation would cost a tenth of the rate of writes. The old generation never needs this much. */
const HEAP = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 320 };

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
    project: (how = PROJECT) => thread.call(how, TIMES.backgroundMs),
    show: (tenantId, position, withinMs) => {
      const request: ShowRequest = { show: tenantId, position, withinMs };
      return thread.call<boolean>(request, withinMs + TIMES.answerMs).catch(() => false);
    },
    close: thread.close,
  };
};
