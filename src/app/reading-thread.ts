import { join } from 'node:path';
import { MessageChannel, Worker, type MessagePort } from 'node:worker_threads';
import { readingWith, type Reading, type ReadingTask } from '../audit/reading';
import type { Configuration } from '../configuration';
import { errorOf, type Failure } from '../async/thread';

/** The messages to the thread (`reading-worker.ts`). */
export type ReadingRequest = { readonly task: ReadingTask; readonly port: MessagePort } | 'close';

/** What the thread reports about itself. Answers go through the port of their task. */
export interface ReadingReport {
  readonly what: string;
  readonly failure: Failure;
}

/** A thread costs some memory, so one that nobody needs is ended. */
const IDLE_MS = 30_000;

/** Hardly anything outlives its batch: the limit on the old generation makes the collector start earlier. */
const HEAP = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 512 };

export interface ReadingThread extends Reading {
  close(): Promise<void>;
}

interface Listeners {
  readonly onError: (what: string, error: unknown) => void;
  /** The process must end. */
  readonly onDeath: (error: Error) => void;
}

/** Started by the first task, and again after it was ended because nobody needed it. */
export const readingThread = (
  configuration: Configuration,
  { onError, onDeath }: Listeners,
  { idleMs = IDLE_MS, file = join(__dirname, 'reading-worker.js') } = {},
): ReadingThread => {
  let worker: Worker | undefined;
  let tasks = 0;
  let idling: NodeJS.Timeout | undefined;
  let ended: Promise<unknown> = Promise.resolve();

  const startWorker = (): Worker => {
    const started = new Worker(file, {
      workerData: configuration,
      resourceLimits: HEAP,
    });
    const exited = new Promise<void>((resolve) => {
      started.on('exit', () => {
        if (worker === started) worker = undefined;
        resolve();
      });
    });
    ended = Promise.all([ended, exited]);
    started.on('message', ({ what, failure }: ReadingReport) => onError(what, errorOf(failure)));
    started.on('error', onDeath);
    return started;
  };

  /** Asks it to exit: `terminate()` while it is inside SQLite would crash the whole process. */
  const end = (): void => {
    worker?.postMessage('close' satisfies ReadingRequest);
    worker = undefined;
  };

  const start = (task: ReadingTask): MessagePort => {
    const { port1, port2 } = new MessageChannel();
    worker ??= startWorker();
    clearTimeout(idling);
    tasks += 1;
    port1.once('close', () => {
      tasks -= 1;
      if (tasks === 0) idling = setTimeout(end, idleMs).unref();
    });
    worker.postMessage({ task, port: port2 } satisfies ReadingRequest, [port2]);
    return port1;
  };

  return {
    ...readingWith(start),
    close: async () => {
      clearTimeout(idling);
      end();
      await ended;
    },
  };
};
