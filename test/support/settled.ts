import type { Outcome } from '../../src/async/thread';

export const settled = (outcomes: readonly Outcome[]): readonly Promise<unknown>[] =>
  outcomes.map((outcome) =>
    'value' in outcome ? Promise.resolve(outcome.value) : Promise.reject(outcome.error as Error),
  );
