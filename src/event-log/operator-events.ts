import type { OperatorEvent } from '../domain/events';
import { operatorEventOf } from './codec';
import type { LedgerLog } from './ledger-log';

/** What the operator has set aside, in order. An unreadable event sets nothing aside: the tenant visibly stays parked. */
export const operatorEvents = async function* ({ log, streams }: LedgerLog): AsyncGenerator<OperatorEvent> {
  for await (const batch of log.readStream(streams.operator()))
    for (const logged of batch) {
      const event = operatorEventOf(logged);
      if (event !== undefined) yield event;
    }
};
