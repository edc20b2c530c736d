import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { pause } from './clock';
import type { Configuration } from './configuration';
import { fault } from './fault';
import type { Elsewhere } from './projecting/projecting';

/** What the thread tells. Its inside is `projecting-thread-inside.ts`. */
export type Told =
  | { readonly tell: 'moved'; readonly generation: string; readonly position: string }
  | { readonly tell: 'trouble'; readonly what: string; readonly code: string; readonly message: string };

/** Batches live for a while: with a larger nursery most of them die in it. */
const NURSERY_MB = 32;
const RESTART_MS = 500;

/** Projects in a thread of its own, so that nothing that is projected makes those wait who ask over HTTP. */
export const projectingThread =
  (configuration: Configuration, onTrouble: (what: string, error: unknown) => void): Elsewhere =>
  (moved) => {
    const ending = new AbortController();

    const hear = (told: Told): void => {
      if (told.tell === 'moved') moved(told.generation, told.position);
      else onTrouble(told.what, fault(told.code, told.message));
    };

    /** Until it ends, for whatever reason. */
    const life = (): Promise<void> =>
      new Promise((resolve) => {
        const worker = new Worker(join(__dirname, 'projecting-thread-inside.js'), {
          workerData: configuration,
          resourceLimits: { maxYoungGenerationSizeMb: NURSERY_MB },
        });
        const close = (): void => worker.postMessage('close');
        ending.signal.addEventListener('abort', close);
        worker.on('message', hear);
        worker.on('error', (error) => onTrouble('The projecting thread died and is started again.', error));
        worker.on('exit', () => {
          ending.signal.removeEventListener('abort', close);
          resolve();
        });
      });

    const lives = async (): Promise<void> => {
      while (!ending.signal.aborted) {
        await life();
        await pause(RESTART_MS, ending.signal);
      }
    };
    const living = lives();

    return async () => {
      ending.abort();
      await living;
    };
  };
