import { hasLog } from '../../projections/logs';
import type { Reader } from '../../projections/projector';
import { BACKGROUND_MS, beforeDeadline, isoNow, monotonicMs } from '../async/clock';
import { encode } from '../event-log/codec';
import type { EventLog, NewEvent } from '../event-log/event-log';
import { firstOf } from '../event-log/reading';
import type { Streams } from '../event-log/streams';
import { codeOf } from '../fault';
import { groupedBy } from '../grouping';
import type { KeyDay, KeyUses } from '../key-uses/key-uses';
import { lastRevision } from '../projecting/stream-revisions';
import { uuidOfText } from '../uuid';
import { CLOSE_MS } from './access-record';

export interface KeyUseRecordDependencies {
  readonly keyUses: Pick<KeyUses, 'daysBefore' | 'remove'>;
  readonly log: Pick<EventLog, 'append' | 'readStream'>;
  readonly streams: Streams;
  /** Reads the live generation of `logs`. */
  readonly logs: () => Reader;
  readonly warn: (what: string, error: unknown) => void;
  readonly now?: () => string;
  readonly everyMs?: number;
}

/** This long after midnight, every process has written what it has counted, even if its clock is slow. */
const EVERY_MS = 300_000;
/** Few enough not to keep requests waiting, and their events fit into one append. */
const PAGE_SIZE = 100;

/** The same id for the same day, however often and by whomever it is recorded. */
const eventOf = ({ tenantId, address, ...data }: KeyDay): NewEvent => {
  const { applicationId, keyId, date, lastAt } = data;
  const actor = { type: 'application', id: applicationId } as const;
  const client = address === undefined ? undefined : { address };
  const id = uuidOfText(`KeyUsed ${tenantId} ${keyId} ${date}`);
  return encode({ type: 'KeyUsed', data }, { actor, keyId, at: lastAt, client }, id);
};

/** Appends those that are not in the stream after this revision, whoever else appends at the same time. */
const appendAfter = async (
  { log }: KeyUseRecordDependencies,
  stream: string,
  events: readonly NewEvent[],
  revision: number,
): Promise<void> => {
  for (let [missing, end] = [events, revision]; missing.length > 0;)
    try {
      await log.append(stream, missing, end < 0 ? 'no_stream' : end, BACKGROUND_MS);
      return;
    } catch (error) {
      if (codeOf(error) !== 'stream_changed') throw error;
      const before = end;
      for await (const batch of log.readStream(stream, before)) {
        const ids = new Set(batch.map(({ id }) => id));
        missing = missing.filter(({ id }) => !ids.has(id));
        end = batch.at(-1)?.revision ?? end;
      }
      if (end === before) throw error;
    }
};

/** Appends what the log does not have yet: neither the read model, nor the stream after what the read model shows. */
const appendMissing = async (
  dependencies: KeyUseRecordDependencies,
  tenantId: string,
  days: readonly KeyDay[],
): Promise<void> => {
  const { log, streams } = dependencies;
  // The days may come from another log that was here before. A read model that lags cannot tell.
  if ((await firstOf(log.readStream(streams.tenant(tenantId)))) === undefined) return;
  const reader = dependencies.logs();
  const shown = await lastRevision(reader, tenantId, 'activity');
  const missing: NewEvent[] = [];
  for (const event of days.map(eventOf)) if (!(await hasLog(reader, tenantId, event.id))) missing.push(event);
  await appendAfter(dependencies, streams.activity(tenantId), missing, shown);
};

/**
 * Writes what each key was used for on a UTC day as one event, after the day has ended. Any number of processes may do so
 * at the same time, and a process that was down catches up. Best effort: nothing waits for it.
 */
export const keyUseRecord = (dependencies: KeyUseRecordDependencies) => {
  const { keyUses, warn, now = isoNow, everyMs = EVERY_MS } = dependencies;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let isClosing = false;

  /** False: the log cannot take any more now. */
  const record = async (tenantId: string, days: readonly KeyDay[]): Promise<boolean> => {
    try {
      await appendMissing(dependencies, tenantId, days);
      await keyUses.remove(days);
      return !isClosing;
    } catch (error) {
      warn(`The use of keys of tenant ${tenantId} could not be recorded.`, error);
      return codeOf(error) !== 'log_unavailable' && !isClosing;
    }
  };

  const recordAll = async (): Promise<void> => {
    const today = new Date(Date.parse(now()) - EVERY_MS).toISOString().slice(0, 10);
    for (let after: KeyDay | undefined; ;) {
      const days = await keyUses.daysBefore(today, PAGE_SIZE, after);
      for (const [tenantId, ofTenant] of groupedBy(days, ({ tenantId: id }) => id))
        if (!(await record(tenantId, ofTenant))) return;
      if (days.length < PAGE_SIZE) return;
      after = days.at(-1);
    }
  };

  /** Records the days that have ended. Never throws. */
  const sumUp = (): Promise<void> =>
    (running ??= recordAll()
      .catch((error: unknown) => warn('The use of keys could not be recorded.', error))
      .finally(() => (running = undefined)));

  return {
    sumUp,
    start: (): void => {
      void sumUp();
      timer = setInterval(() => void sumUp(), everyMs).unref();
    },
    close: async (): Promise<void> => {
      isClosing = true;
      clearInterval(timer);
      const late = () => new Error(`It took longer than ${CLOSE_MS} ms.`);
      await beforeDeadline(running ?? Promise.resolve(), monotonicMs() + CLOSE_MS, late).catch(
        (error: unknown) => warn('The use of keys could not be recorded.', error),
      );
    },
  };
};

export type KeyUseRecord = ReturnType<typeof keyUseRecord>;
