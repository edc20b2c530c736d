import { codeOf } from '../fault';
import { pause } from '../clock';
import { generationName } from '../read-models/read-models';
import type { Consumer } from './consumer';
import type { LiveGeneration } from './live-generations';
import { retryDue } from './parking';
import { project, type ProjectionRun } from './projection-run';

/** The runs of this process: one for each generation that is to be projected, started and stopped as those change. */
export interface ProjectionRuns {
  /**
   * Starts what is missing and stops what is not wanted any more. With `retry` all begin anew, with the parked tenants
   * for which it holds.
   */
  keep(wanted: readonly LiveGeneration[], retry?: AskedFor): Promise<void>;
  stop(): Promise<void>;
}

/** Is another try of this tenant asked for? */
export type AskedFor = (tenantId: string) => boolean;

interface Running {
  readonly ending: AbortController;
  readonly done: Promise<void>;
}

const RETRY_MS = 500;

export const projectionRuns = (parts: {
  readonly runOf: (one: LiveGeneration) => Promise<ProjectionRun>;
  readonly consumer: Consumer;
  readonly onError: (what: string, error: unknown) => void;
}): ProjectionRuns => {
  const { runOf, consumer, onError } = parts;
  const running = new Map<string, Running>();

  /** Projects one generation until it is aborted, through whatever goes wrong. */
  const keepProjecting = async (
    one: LiveGeneration,
    retry: AskedFor | undefined,
    signal: AbortSignal,
  ): Promise<void> => {
    let asked = retry;
    while (!signal.aborted)
      try {
        const run = await runOf(one);
        await retryDue(run, asked);
        asked = undefined;
        await project(run, consumer.follow, signal);
      } catch (error) {
        // The pointers will say so, too: nobody needs it any more.
        if (codeOf(error) !== 'generation_removed')
          onError(`Projecting ${generationName(one.generation.id)} stopped and is tried again.`, error);
        await pause(RETRY_MS, signal);
      }
  };

  const start = (one: LiveGeneration, retry?: AskedFor): void => {
    const ending = new AbortController();
    const done = keepProjecting(one, retry, ending.signal);
    running.set(generationName(one.generation.id), { ending, done });
  };

  const end = async (names: readonly string[]): Promise<void> => {
    const ended = names.map((name) => running.get(name)).filter((one) => one !== undefined);
    for (const name of names) running.delete(name);
    for (const { ending } of ended) ending.abort();
    await Promise.all(ended.map(({ done }) => done));
  };

  return {
    keep: async (wanted, retry) => {
      const names = new Set(wanted.map(({ generation }) => generationName(generation.id)));
      await end([...running.keys()].filter((name) => retry !== undefined || !names.has(name)));
      for (const one of wanted) if (!running.has(generationName(one.generation.id))) start(one, retry);
    },
    stop: () => end([...running.keys()]),
  };
};
