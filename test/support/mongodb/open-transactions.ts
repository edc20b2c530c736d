import type { Binary, Document } from 'mongodb';
import { pause } from '../../../src/async/clock';
import { TIMES } from '../../../src/times';
import type { Faults } from './faults';

/** What a process has sent before it was stopped may arrive a little later. */
const ARRIVES_MS = 200;

const NOTHING = { type: 'slow', ms: 0 } as const;

/**
 * Stops the process behind a proxy where it has written everything of a transaction, and is about to commit it. The commit
 * is delivered once `resumed` resolves, or never.
 */
export const stopInTransaction = (faults: Faults, stop: () => void, resumed?: Promise<void>) => {
  /** What was sent in the last transaction of each session. */
  const sent = new Map<string, Document[]>();
  const note = (command: Document): void => {
    if (command['autocommit'] !== false) return;
    const session = (command as { lsid: { id: Binary } }).lsid.id.toString('hex');
    if (command['startTransaction'] === true) sent.set(session, []);
    sent.get(session)?.push(command);
  };
  const when = (command: Document): boolean => {
    note(command);
    return false;
  };
  const forget = faults.add({ when, times: Infinity, action: NOTHING });
  /** Of a transaction that was begun before, nothing is known. */
  const known = pause(TIMES.transactionMs);
  return new Promise<(text: string) => boolean>((resolve) => {
    const first = async (): Promise<void> => {
      stop();
      await pause(ARRIVES_MS);
      forget();
      const texts = [...sent.values()].flat().map((command) => JSON.stringify(command));
      resolve((text) => texts.some((one) => one.includes(text)));
      await resumed;
    };
    const action = resumed === undefined ? ({ type: 'hang' } as const) : NOTHING;
    void known.then(() =>
      faults.add({ command: 'commitTransaction', when: () => sent.size > 0, first, action }),
    );
  });
};
