import { join } from 'node:path';
import { BACKGROUND_MS } from '../async/clock';
import { errorOf, startThread, type Failure, type Thread } from '../async/thread';
import type { Configuration } from '../configuration';
import type { ParkedTenant } from '../projecting/parked-tenants';
import type { Shown } from '../projecting/project';

/** What the thread (`worker.ts`) is asked: to append to the embedded log, or to begin to project. */
export type WorkerRequest = { readonly to: 'log'; readonly request: unknown } | { readonly to: 'projecting' };

export type WorkerReport =
  | { readonly type: 'shown'; readonly shown: Shown }
  /** From 0 to 1. */
  | { readonly type: 'building'; readonly progress: number }
  | { readonly type: 'parked'; readonly tenant: ParkedTenant }
  | { readonly type: 'error'; readonly what: string; readonly failure: Failure };

export interface WorkerListeners {
  /** The live set shows everything up to here. Called before the appends of the same turn are answered. */
  readonly onShown: (shown: Shown) => void;
  readonly onBuilding: (progress: number) => void;
  readonly onParked: (tenant: ParkedTenant) => void;
  readonly onError: (what: string, error: unknown) => void;
  /** It has died: the process must end. */
  readonly onDeath: (error: Error) => void;
}

/** The thread of a server that projects, and in the embedded profile also appends: whoever appends projects. */
export interface WorkerThread {
  readonly appender: Thread;
  project(): Promise<void>;
  close(): Promise<void>;
}

/**
 * With a larger young generation, most batches are garbage before they would be promoted. The old generation never needs
 * this much: its limit only makes the collector start earlier.
 */
const HEAP = { maxYoungGenerationSizeMb: 32, maxOldGenerationSizeMb: 320 };

export const workerThread = (configuration: Configuration, listeners: WorkerListeners): WorkerThread => {
  const onReport = (report: WorkerReport): void => {
    switch (report.type) {
      case 'shown':
        return listeners.onShown(report.shown);
      case 'building':
        return listeners.onBuilding(report.progress);
      case 'parked':
        return listeners.onParked(report.tenant);
      case 'error':
        return listeners.onError(report.what, errorOf(report.failure));
    }
  };
  const { onDeath } = listeners;
  const file = join(__dirname, 'worker.js');
  const thread = startThread(file, configuration, { heap: HEAP, onReport, onDeath });
  return {
    appender: {
      call: (request, withinMs) => thread.call({ to: 'log', request } satisfies WorkerRequest, withinMs),
      // It is closed with the thread.
      close: async () => undefined,
    },
    project: () => thread.call({ to: 'projecting' } satisfies WorkerRequest, BACKGROUND_MS),
    close: thread.close,
  };
};
