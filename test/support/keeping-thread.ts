import { parentPort, workerData } from 'node:worker_threads';
import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../src/event-log/streams';

/** Reads the whole log and keeps the names from one event of every batch, like a cache of documents keyed by them. */
const run = async (): Promise<void> => {
  const log = await sqliteEventLog(workerData as string, streamNames(), { opening: 'read' });
  const kept: string[] = [];
  for await (const [first] of log.readAll())
    if (first !== undefined) kept.push(first.stream, first.id, first.type);
  await log.close();
  parentPort?.postMessage(kept.length);
};

void run();
