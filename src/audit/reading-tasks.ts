import type { MessagePort } from 'node:worker_threads';
import { documentOfTenant } from '../../projections/tenants';
import { monotonicMs } from '../async/clock';
import type { LedgerLog } from '../event-log/ledger-log';
import { loadTimeout } from '../ledger/folds';
import { condition } from '../async/condition';
import { failureOf } from '../async/thread';
import { eventTexts, type StreamRequest } from './event-texts';
import { searchEvent } from './find-event';
import { fairTurns, readingInTurns, type Turns } from './fair-turns';
import { liveTail, type LiveTail } from './live-tail';
import {
  CHUNKS_AHEAD,
  type Answer,
  type Question,
  type Reading,
  type ReadingTask,
  type StreamAnswer,
} from './reading';
import { applicationsAt, tenantAt } from './past-tenant';

/** How each question is answered. */
const answers: {
  readonly [Q in Question]: (
    ledgerLog: LedgerLog,
    tenantId: string,
    about: Parameters<Reading[Q]>[1],
  ) => ReturnType<Reading[Q]>;
} = {
  tenantAt: async (ledgerLog, tenantId, moment) => {
    const tenant = await tenantAt(ledgerLog, tenantId, moment);
    return tenant.status === 'absent' ? undefined : documentOfTenant(tenant);
  },
  applicationsAt,
  search: searchEvent,
};

interface Working {
  readonly ledgerLog: LedgerLog;
  readonly tail: LiveTail;
  readonly turns: Turns;
  readonly gone: AbortSignal;
}

const answerOf = (
  { do: question, tenantId, about, deadline }: Exclude<ReadingTask, { do: 'stream' }>,
  { ledgerLog, turns, gone }: Working,
): Promise<unknown> => {
  const turn = async (): Promise<void> => {
    await turns(tenantId);
    if (gone.aborted || monotonicMs() >= deadline) throw loadTimeout();
  };
  return answers[question](readingInTurns(ledgerLog, turn), tenantId, about as never);
};

/** Waits until the reader has asked for one more chunk. */
const demandOf = (port: MessagePort, gone: AbortSignal) => {
  const asked = condition();
  let chunks = CHUNKS_AHEAD;
  port.on('message', () => {
    chunks += 1;
    asked.notify();
  });
  return async (): Promise<void> => {
    if (chunks === 0) await asked.wait({ abort: gone });
    chunks -= 1;
  };
};

const sendEvents = async (
  request: StreamRequest,
  port: MessagePort,
  { ledgerLog, tail, turns, gone }: Working,
): Promise<void> => {
  const turn = async (): Promise<void> => {
    await turns(request.tenantId);
    if (gone.aborted) throw loadTimeout();
  };
  const texts = eventTexts(request, { ledgerLog: readingInTurns(ledgerLog, turn), tail, turn, gone });
  const demand = demandOf(port, gone);
  const encoder = new TextEncoder();
  try {
    for (;;) {
      await demand();
      const { done, value } = gone.aborted ? { done: true } : await texts.next();
      if (done === true || value === undefined) return;
      const { text, ...chunk } = value;
      const bytes = encoder.encode(text);
      port.postMessage({ ...chunk, bytes } satisfies StreamAnswer, [bytes.buffer]);
    }
  } finally {
    await texts.return(undefined);
  }
};

/**
 * Works on reading tasks, the tenants taking turns. Each answers through its port; once that is closed, nobody waits for
 * it any more.
 */
export const readingTasks = (opening: Promise<LedgerLog>) => {
  const turns = fairTurns();
  const reading = opening.then((ledgerLog) => ({
    ledgerLog,
    tail: liveTail(ledgerLog.log, ledgerLog.streams),
  }));
  reading.catch(() => undefined);

  return (task: ReadingTask, port: MessagePort): Promise<void> => {
    const gone = new AbortController();
    port.once('close', () => gone.abort());
    const work = async (): Promise<void> => {
      const { ledgerLog, tail } = await reading;
      const working = { ledgerLog, tail, turns, gone: gone.signal };
      if (task.do === 'stream') return sendEvents(task.request, port, working);
      const found = await answerOf(task, working);
      port.postMessage({ found } satisfies Answer<unknown>);
    };
    return work().catch((error: unknown) => port.postMessage({ failure: failureOf(error) }));
  };
};
