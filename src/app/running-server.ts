import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Configuration } from '../configuration';
import { TIMES } from '../times';
import type { LedgerStatus } from './status';

/** Where a server listens. */
interface Addresses {
  readonly url: string;
  readonly operations: string;
}

type Status = Partial<LedgerStatus>;
type Place = Pick<Configuration, 'DATA_DIR' | 'EVENTSTORE_URL'>;

const noteIn = ({ DATA_DIR }: Place): string => join(DATA_DIR, 'server.json');

/** Tells commands where the server of the data folder listens: the one that started last. */
export const noteServer = (place: Place, addresses: Addresses): void => {
  if (place.EVENTSTORE_URL !== '') return;
  try {
    writeFileSync(noteIn(place), `${JSON.stringify(addresses)}\n`, { mode: 0o600 });
  } catch {
    // On a full disk, commands do not find it.
  }
};

/** The address of the server of the data folder, if it answers, and has this log. */
export const runningServer = async (place: Place, identity: string): Promise<string | undefined> => {
  try {
    const { url, operations } = JSON.parse(readFileSync(noteIn(place), 'utf8')) as Addresses;
    const answer = await fetch(`${operations}/readyz`, { signal: AbortSignal.timeout(TIMES.noAnswerMs) });
    const body = (await answer.json()) as Status & { readonly last_known?: Status };
    return (body.log ?? body.last_known?.log)?.identity === identity ? url : undefined;
  } catch {
    return undefined;
  }
};
