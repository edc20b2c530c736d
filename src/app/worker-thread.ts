import { join } from 'node:path';
import { startThread, type Failure, type Thread } from '../async/thread';
import type { Configuration } from '../configuration';
import type { Position } from '../event-log/event-log';
import type { AppenderRequest } from '../event-log/sqlite/sqlite-event-log';
import type { Show } from '../projecting/show-tenants';
import type { ParkedTenant } from '../read-models/read-models';
import { TIMES } from '../times';

/** What is asked of the thread (`worker.ts`). */
export type WorkerRequest =
  | AppenderRequest
  /** To begin to project: as a server does, or only what it is asked to show. */
  | { readonly type: 'project'; readonly showsOnly: boolean }
  /** Whether a tenant is shown up to a position. */
  | {
      readonly type: 'show';
      readonly tenantId: string;
      readonly position: Position;
      readonly withinMs: number;
    };

export type WorkerReport =
  /** How much of the log a first build has read, from 0 to 1. */
  | { readonly type: 'building'; readonly progress: number }
  | { readonly type: 'parked'; readonly tenant: ParkedTenant }
  | { readonly type: 'error'; readonly what: string; readonly failure: Failure };

/** The thread of a server that projects, and in the embedded profile also appends: whoever appends projects. */
export interface WorkerThread {
  readonly appender: Thread;
  project(options?: { readonly showsOnly: boolean }): Promise<void>;
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
  const call = <T>(request: WorkerRequest, withinMs: number): Promise<T> => thread.call(request, withinMs);
  return {
    // It is closed with the thread.
    appender: { call: thread.call, close: async () => undefined },
    project: ({ showsOnly } = { showsOnly: false }) =>
      call({ type: 'project', showsOnly }, TIMES.backgroundMs),
    show: (tenantId, position, withinMs) =>
      call<boolean>({ type: 'show', tenantId, position, withinMs }, withinMs + TIMES.answerMs).catch(
        () => false,
      ),
    close: thread.close,
  };
};
