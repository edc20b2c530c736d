import { randomUUID } from 'node:crypto';
import { serversOf } from '../../src/event-log/eventstoredb/connection-string';
import { eventStoreDbEventLog } from '../../src/event-log/eventstoredb/eventstoredb-event-log';
import { streamNames, type Streams } from '../../src/event-log/streams';
import { startStandIn, type StandIn } from '../support/event-store/stand-in';
import { eventLogContract } from './contract/contract';
import type { OpenedLog } from './contract/given-log';

/** A real server if one is named, else the stand-in. The same suite either way, each log with its own prefix. */
const REAL = process.env['TEST_EVENTSTORE_URL'];
const around = { waitMs: 10_000, onError: () => undefined };

let standIn: StandIn | undefined;
beforeAll(async () => {
  if (REAL === undefined) standIn = await startStandIn();
});
// Reads of all streams go through what earlier tests have left.
afterEach(() => standIn?.log.restore(1));
afterAll(() => standIn?.stop());

const openAs = async (streams: Streams, made = {}): Promise<OpenedLog> => {
  const open = () => eventStoreDbEventLog(REAL ?? standIn?.url ?? '', streams, { ...around, ...made });
  const log = await open();
  return {
    log,
    streams,
    openReads: () => standIn?.openReads.size ?? 0,
    reopen: async () => {
      await log.close();
      return openAs(streams);
    },
    beside: open,
  };
};

eventLogContract(
  REAL === undefined ? 'the EventStoreDB stand-in' : `the event store ${serversOf(REAL)}`,
  (format) => openAs(streamNames(`test-${randomUUID()}.`), format === undefined ? {} : { format }),
);
