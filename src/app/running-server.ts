import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Configuration } from '../configuration';
import { TIMES } from '../times';
import type { LedgerStatus } from './status';

/** In the data folder: where the server listens that started last. */
const noteIn = (folder: string): string => join(folder, 'server.json');

/** For commands. */
export const noteServer = ({ DATA_DIR }: Configuration, url: string, operations: string): void => {
  try {
    writeFileSync(noteIn(DATA_DIR), `${JSON.stringify({ url, operations })}\n`, { mode: 0o600 });
  } catch {
    // On a full disk, commands do not find it.
  }
};

/** The address of the server of the data folder, if it answers, and has this log. */
export const runningServer = async ({ DATA_DIR }: Configuration, identity: string) => {
  try {
    const noted = JSON.parse(readFileSync(noteIn(DATA_DIR), 'utf8')) as Record<'url' | 'operations', string>;
    const answer = await fetch(`${noted.operations}/readyz`, {
      signal: AbortSignal.timeout(TIMES.noAnswerMs),
    });
    const { last_known: last, log = last?.log } = (await answer.json()) as Partial<LedgerStatus> & {
      readonly last_known?: LedgerStatus;
    };
    return log?.identity === identity ? noted.url : undefined;
  } catch {
    return undefined;
  }
};
