import { randomUUID } from 'node:crypto';
import type { EventLog, LoggedEvent } from '../../../src/event-log/event-log';
import { eventStoreDbEventLog } from '../../../src/event-log/eventstoredb/eventstoredb-event-log';
import { streamNames, type Streams } from '../../../src/event-log/streams';
import { closeAfterwards } from '../closing';
import { startStandIn, type StandIn, type StandInOptions } from './stand-in';

export interface OwnLog {
  readonly log: EventLog;
  readonly streams: Streams;
  readonly warnings: readonly string[];
  aStream(): string;
}

interface LogOptions {
  readonly waitMs?: number;
  readonly prefix?: string;
  readonly doubtMs?: number;
  readonly warnings?: string[];
}

export const standIn = async (input: StandInOptions = {}): Promise<StandIn> => {
  const server = await startStandIn(input);
  closeAfterwards(() => server.stop());
  return server;
};

export const openOn = async (
  url: string,
  { waitMs = 5_000, prefix = `test-${randomUUID()}.`, warnings = [], ...more }: LogOptions = {},
): Promise<OwnLog> => {
  const streams = streamNames(prefix);
  const onError = (what: string): void => void warnings.push(what);
  const log = await eventStoreDbEventLog(url, streams, { waitMs, onError, ...more });
  closeAfterwards(() => log.close());
  return { log, streams, warnings, aStream: () => streams.tenant(randomUUID()) };
};

export const onStandIn = async (input: StandInOptions = {}) => {
  const server = await standIn(input);
  return { server, ...(await openOn(server.url)) };
};

export const followed = (log: EventLog): { readonly seen: readonly LoggedEvent[] } => {
  const abort = new AbortController();
  const seen: LoggedEvent[] = [];
  const ended = (async () => {
    for await (const batch of log.readAll({ follow: true, signal: abort.signal })) seen.push(...batch);
  })();
  closeAfterwards(() => {
    abort.abort();
    return ended;
  });
  return { seen };
};
