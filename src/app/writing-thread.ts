import { join } from 'node:path';
import { BACKGROUND_MS } from '../async/clock';
import { errorOf, startThread, type Failure, type Thread } from '../async/thread';
import type { Configuration } from '../configuration';
import type { ParkedTenant } from '../projecting/parked-tenants';
import type { Progress } from '../projecting/progress';
import type { ProjectingThread } from '../projecting/projecting';
import { holderName } from '../read-models/lease-holder';
import type { Writers } from './adapters';

/** The `workerData` of the thread (`writing-worker.ts`). */
export interface WritingData {
  readonly configuration: Configuration;
  /** The same after a restart, so that the thread gets its leases back at once. */
  readonly holder: string;
}

/** What it is asked: to write for one of the stores, or to project. */
export type WritingRequest =
  | { readonly to: keyof Writers; readonly request: unknown }
  | { readonly to: 'projecting'; readonly request: 'start' | 'stop' };

export type WritingReport =
  | { readonly type: 'moved'; readonly move: Parameters<Progress['moved']> }
  | { readonly type: 'parked'; readonly tenant: ParkedTenant }
  | { readonly type: 'error'; readonly what: string; readonly failure: Failure };

/** Owns every connection that writes to a file of this server, and projects. */
export interface WritingThread {
  readonly writers: Writers;
  readonly project: ProjectingThread;
  close(): Promise<void>;
}

interface Listeners {
  readonly onError: (what: string, error: unknown) => void;
  readonly onParked?: (tenant: ParkedTenant) => void;
}

/**
 * With a larger young generation, most batches are garbage before they would be promoted. The old generation never needs
 * this much: its limit only makes the collector start earlier.
 */
const HEAP = { maxYoungGenerationSizeMb: 32, maxOldGenerationSizeMb: 320 };

/** The wait before projecting is started again. */
export const RESTART_MS = 500;

export const writingThread = (
  configuration: Configuration,
  { onError, onParked = () => undefined }: Listeners,
): WritingThread => {
  /** Undefined while it does not project. */
  let moved: Progress['moved'] | undefined;

  const onReport = (report: WritingReport): void => {
    switch (report.type) {
      case 'moved':
        return moved?.(...report.move);
      case 'parked':
        return onParked(report.tenant);
      case 'error':
        return onError(report.what, errorOf(report.failure));
    }
  };
  const tell = (request: 'start' | 'stop'): Promise<unknown> =>
    thread.call({ to: 'projecting', request } satisfies WritingRequest, BACKGROUND_MS);
  const startLater = (): void =>
    void setTimeout(() => moved !== undefined && startProjecting(), RESTART_MS).unref();
  const startProjecting = (): void =>
    void tell('start').catch((error: unknown) => {
      onError('Projecting could not be started; retrying.', error);
      startLater();
    });
  const onDeath = (error: Error | undefined): void => {
    onError('The writing thread died and is started again.', error ?? new Error('It exited.'));
    startLater();
  };
  const data: WritingData = { configuration, holder: holderName() };
  const thread = startThread(join(__dirname, 'writing-worker.js'), data, { heap: HEAP, onReport, onDeath });

  /** Closed with the thread. */
  const writer = (to: keyof Writers): Thread => ({
    call: (request, withinMs) => thread.call({ to, request } satisfies WritingRequest, withinMs),
    close: async () => undefined,
  });

  return {
    writers: {
      log: writer('log'),
      readModels: writer('readModels'),
      snapshots: writer('snapshots'),
    },
    project: (onMoved) => {
      moved = onMoved;
      startProjecting();
      return async () => {
        moved = undefined;
        await tell('stop').catch(() => undefined);
      };
    },
    close: thread.close,
  };
};
