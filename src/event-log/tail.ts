import { condition, pause, threadMs } from '../async/clock';
import { TIMES } from '../times';
import type { Batch, LoggedEvent, Position } from './event-log';
import type { LedgerLog } from './streams';

interface TailOptions {
  readonly maxBytes?: number;
  /** Called with failures that are retried. */
  readonly onError: (error: unknown) => void;
}

const MAX_BYTES = 4_194_304;

/** What an event costs besides its content. */
const EVENT_BYTES = 512;

const sizeOf = ({ bytes = 0 }: LoggedEvent): number => bytes + EVENT_BYTES;

const newestEvents = ({ parse }: LedgerLog['streams'], maxBytes: number) => {
  let events: LoggedEvent[] = [];
  const arrived = new Map<Position, number>();
  const byTenant = new Map<string, LoggedEvent[]>();
  let bytes = 0;

  const drop = (count: number): Position | undefined => {
    for (const event of events.slice(0, count)) {
      bytes -= sizeOf(event);
      arrived.delete(event.position);
      const tenantId = parse(event.stream)?.tenantId ?? '';
      const own = byTenant.get(tenantId) ?? [];
      if (own.length > 1) own.shift();
      else byTenant.delete(tenantId);
    }
    const last = events[count - 1]?.position;
    events = events.slice(count);
    return last;
  };

  return {
    all: (): Batch => events,
    of: (tenantId: string): Batch => byTenant.get(tenantId) ?? [],
    arrivedMs: (position: Position): number | undefined => arrived.get(position),
    /** Returns the last position that it has forgotten. */
    add: (batch: Batch): Position | undefined => {
      const now = threadMs();
      for (const event of batch) {
        events.push(event);
        bytes += sizeOf(event);
        arrived.set(event.position, now);
        const tenantId = parse(event.stream)?.tenantId;
        if (tenantId === undefined) continue;
        const own = byTenant.get(tenantId);
        if (own === undefined) byTenant.set(tenantId, [event]);
        else own.push(event);
      }
      let count = 0;
      let left = bytes;
      // An eighth at a time, so that this is seldom.
      while (bytes > maxBytes && left > (7 * maxBytes) / 8) left -= sizeOf(events[count++] as LoggedEvent);
      return count === 0 ? undefined : drop(count);
    },
  };
};

/** The newest events of a log, in memory: follows it from its head on. After a failure it goes on where it was. */
export const tailOf = ({ log, streams }: LedgerLog, options: TailOptions) => {
  const { maxBytes = MAX_BYTES, onError } = options;
  const newest = newestEvents(streams, maxBytes);
  const closing = new AbortController();
  const { signal } = closing;
  const { notify, wait } = condition();
  /** Everything after `start` up to `end` is in memory. */
  let start: Position | undefined;
  let end: Position | undefined;

  const follow = async (): Promise<void> => {
    start ??= end = (await log.head())?.position ?? '';
    notify();
    for await (const batch of log.readAll({ after: end, follow: true, signal })) {
      start = newest.add(batch) ?? start;
      end = batch.at(-1)?.position ?? end;
      notify();
    }
  };
  const run = async (): Promise<void> => {
    for (; !signal.aborted; await pause(TIMES.retryMs, signal))
      await follow().catch((error: unknown) => (signal.aborted ? undefined : onError(error)));
  };
  const running = run();

  const since = (events: Batch, after: Position): Batch =>
    events.slice(events.findLastIndex(({ position }) => position <= after) + 1);
  const goesBackTo = (position: Position): boolean => start !== undefined && position >= start;

  return {
    /** Whether it has passed a position, now or within this time. */
    reached: async (position: Position, withinMs: number): Promise<boolean> => {
      const until = threadMs() + withinMs;
      for (;;) {
        if (end !== undefined && end >= position) return true;
        const left = until - threadMs();
        if (left <= 0 || signal.aborted) return false;
        await wait({ withinMs: left, abort: signal });
      }
    },
    /** The next events after a position. Undefined: it does not go back that far. */
    after: (position: Position = ''): Batch | undefined =>
      goesBackTo(position) ? since(newest.all(), position) : undefined,
    /** The events of a tenant up to a position that it has passed. Undefined: it does not go back that far. */
    ofTenant: (tenantId: string, after: Position, upTo: Position): Batch | undefined => {
      if (!goesBackTo(after)) return undefined;
      return since(newest.of(tenantId), after).filter(({ position }) => position <= upTo);
    },
    /** How long ago an event arrived. One that is not in it is old. */
    ageMs: ({ position }: LoggedEvent): number => threadMs() - (newest.arrivedMs(position) ?? -Infinity),
    /** Resolves once more has arrived, or the time is up. */
    more: (withinMs: number, abort: AbortSignal = signal): Promise<void> => wait({ withinMs, abort }),
    close: async (): Promise<void> => {
      closing.abort();
      await running;
    },
  };
};

export type Tail = ReturnType<typeof tailOf>;
