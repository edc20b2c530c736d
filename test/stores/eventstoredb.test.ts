import { randomUUID } from 'node:crypto';
import { serversOf } from '../../src/event-log/eventstoredb/connection';
import { eventStoreDbEventLog } from '../../src/event-log/eventstoredb/eventstoredb-event-log';
import { streamNames, type Streams } from '../../src/event-log/streams';
import { startStandIn, type StandIn } from '../support/event-store/stand-in';
import { anEvent } from '../support/events';
import { eventLogContract } from '../event-log/contract/contract';
import type { OpenedLog } from '../event-log/contract/given-log';

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

const openAs = async (streams: Streams, isCopy = false): Promise<OpenedLog> => {
  const open = (options = {}) =>
    eventStoreDbEventLog(REAL ?? standIn?.url ?? '', streams, { ...around, ...options });
  const log = await open({ isCopy });
  return {
    log,
    streams,
    openReads: () => standIn?.openReads.size ?? 0,
    reopen: async () => {
      await log.close();
      return openAs(streams);
    },
    beside: () => open(),
  };
};

eventLogContract(
  REAL === undefined ? 'the EventStoreDB stand-in' : `the event store ${serversOf(REAL)}`,
  (purpose) => openAs(streamNames(`test-${randomUUID()}.`), purpose === 'copy'),
);

it('refuses a log with any other format', async () => {
  const streams = streamNames(`test-${randomUUID()}.`);
  const { log, reopen } = await openAs(streams);
  await log.append(streams.log(), [anEvent({ format: 2 })], 0);
  await expect(reopen()).rejects.toMatchObject({
    code: 'log_of_newer_program',
    message: expect.stringContaining('has format 2, and this program knows only format 1.'),
  });
});
