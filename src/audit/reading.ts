import type { MessagePort } from 'node:worker_threads';
import type { TenantDocument } from '../../projections/tenants';
import { monotonicMs } from '../async/clock';
import { logFault, type Position } from '../event-log/event-log';
import type { Fault } from '../fault';
import { condition, type Condition } from '../async/condition';
import { errorOf, type Failure } from '../async/thread';
import type { EventText, StreamRequest } from './event-texts';
import type { EventSearch } from './find-event';
import type { Moment, PastApplicationPage, PastQuestion } from './past-tenant';

/** Reads that may take long, in a thread of their own (`reading-tasks.ts`), so that they delay no other request. */
export interface Reading {
  /** Undefined: it did not exist at that moment. */
  tenantAt(tenantId: string, moment: Moment, until: Until): Promise<TenantDocument | undefined>;
  applicationsAt(tenantId: string, question: PastQuestion, until: Until): Promise<PastApplicationPage>;
  /** The position of the event. */
  search(tenantId: string, wanted: EventSearch, until: Until): Promise<Position | undefined>;
  /** The events of a tenant. Nothing is read ahead of the reader but a few chunks. Must be closed. */
  stream(request: StreamRequest): EventChunks;
}

export interface EventChunk extends Omit<EventText, 'text'> {
  readonly bytes: Uint8Array;
}

export interface EventChunks {
  /** Undefined: there was none in this time, or before the abort. Throws why the log cannot be read. */
  next(withinMs: number, abort: AbortSignal): Promise<EventChunk | undefined>;
  close(): void;
}

/** Work ends with its deadline, and with its caller. */
export interface Until {
  /** On the monotonic clock. */
  readonly deadline: number;
  /** The caller has disconnected. */
  readonly gone: AbortSignal;
}

/** What has one answer. */
export type Question = Exclude<keyof Reading, 'stream'>;

/** What the thread is asked for. It answers through a port of its own, and stops when that is closed. */
export type ReadingTask =
  | {
      readonly do: Question;
      readonly tenantId: string;
      readonly about: Parameters<Reading[Question]>[1];
      readonly deadline: number;
    }
  | { readonly do: 'stream'; readonly request: StreamRequest };

/** How many chunks of a stream the thread may send before the reader has asked for more, each with `MORE`. */
export const CHUNKS_AHEAD = 2;
const MORE = 'more';

/** Starts a task and returns the port of its answers. A thread that dies closes it. */
export type StartTask = (task: ReadingTask) => MessagePort;

/** To a task with one answer. */
export type Answer<T> = { readonly found: T } | { readonly failure: Failure };

export type StreamAnswer = EventChunk | { readonly failure: Failure };

/** At most so many reads of a tenant's history at a time; the others wait. */
const HISTORIES_PER_TENANT = 2;

const tooLong = (): Fault =>
  logFault(
    'log_unavailable',
    `The history of this Tenant could not be read in time. At most ${HISTORIES_PER_TENANT} such requests of a Tenant are answered at a time: with "as_of" each reads all changes up to then, and for an unknown event id all events that the read models do not show yet.`,
  );

const threadDied = (): Fault => logFault('log_unavailable', 'The thread that reads the event log has died.');

/** The first answer to a task, in time and while somebody waits for it. */
const answerTo = <T>(task: ReadingTask, start: StartTask, { deadline, gone }: Until): Promise<Answer<T>> =>
  new Promise((resolve, reject) => {
    const port = start(task);
    const giveUp = (): void => settle(() => reject(tooLong()));
    const timer = setTimeout(giveUp, Math.max(0, deadline - monotonicMs()));
    const settle = (outcome: () => void): void => {
      clearTimeout(timer);
      gone.removeEventListener('abort', giveUp);
      outcome();
      port.close();
    };
    gone.addEventListener('abort', giveUp);
    if (gone.aborted) giveUp();
    port.once('message', (answer: Answer<T>) => settle(() => resolve(answer)));
    port.once('close', () => settle(() => reject(threadDied())));
  });

const chunksFrom = (port: MessagePort): EventChunks => {
  const arrived: StreamAnswer[] = [];
  const changed = condition();
  let isClosed = false;
  port.on('message', (answer: StreamAnswer) => {
    arrived.push(answer);
    changed.notify();
  });
  port.once('close', () => {
    isClosed = true;
    changed.notify();
  });
  return {
    next: async (withinMs, abort) => {
      if (arrived.length === 0 && !isClosed) await changed.wait({ withinMs, abort });
      const answer = arrived.shift();
      if (answer === undefined && isClosed) throw threadDied();
      if (answer === undefined) return undefined;
      if ('failure' in answer) throw errorOf(answer.failure);
      port.postMessage(MORE);
      return answer;
    },
    close: () => port.close(),
  };
};

interface Slots {
  taken: number;
  /** Those who wait, longest first. */
  readonly waiting: Set<Condition & { isGiven: boolean }>;
}

/** Lets each tenant have a number of things under way at a time. */
const tenantSlots = (perTenant: number) => {
  const tenants = new Map<string, Slots>();

  const release = (tenantId: string, slots: Slots): void => {
    const [next] = slots.waiting;
    if (next === undefined) slots.taken -= 1;
    else {
      slots.waiting.delete(next);
      next.isGiven = true;
      next.notify();
    }
    if (slots.taken === 0) tenants.delete(tenantId);
  };

  /** Waits in order for a slot. Call the returned function once, when it is free again. Undefined: there was none in time. */
  return async (tenantId: string, { deadline, gone }: Until): Promise<(() => void) | undefined> => {
    const slots: Slots = tenants.get(tenantId) ?? { taken: 0, waiting: new Set() };
    tenants.set(tenantId, slots);
    if (slots.taken < perTenant) slots.taken += 1;
    else {
      const waiter = { ...condition(), isGiven: false };
      slots.waiting.add(waiter);
      await waiter.wait({ withinMs: deadline - monotonicMs(), abort: gone });
      slots.waiting.delete(waiter);
      if (!waiter.isGiven) return undefined;
    }
    return () => release(tenantId, slots);
  };
};

export const readingWith = (start: StartTask): Reading => {
  const takeSlot = tenantSlots(HISTORIES_PER_TENANT);
  const ask =
    <Q extends Question>(question: Q) =>
    async <T>(tenantId: string, about: Parameters<Reading[Q]>[1], until: Until): Promise<T> => {
      const release = await takeSlot(tenantId, until);
      if (release === undefined) throw tooLong();
      try {
        const task = { do: question, tenantId, about, deadline: until.deadline };
        const answer = await answerTo<T>(task, start, until);
        if ('found' in answer) return answer.found;
        throw errorOf(answer.failure);
      } finally {
        release();
      }
    };
  return {
    tenantAt: ask('tenantAt'),
    applicationsAt: ask('applicationsAt'),
    search: ask('search'),
    stream: (request) => chunksFrom(start({ do: 'stream', request })),
  };
};
