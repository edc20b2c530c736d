import { parentPort, workerData } from 'node:worker_threads';
import { readingTasks } from '../audit/reading-tasks';
import type { Configuration } from '../configuration';
import { logFault } from '../event-log/event-log';
import { failureOf } from '../async/thread';
import { messageOf } from '../fault';
import { openLogForReading } from './adapters';
import { lowerPriority } from './priority';
import type { ReadingReport, ReadingRequest } from './reading-thread';

const port = parentPort;
if (port === null) throw new Error('This belongs in a worker thread.');

/** Requests come first. Elsewhere than on Linux this would concern the whole process. */
if (process.platform === 'linux') lowerPriority();

const onError = (what: string, error: unknown): void =>
  port.postMessage({ what, failure: failureOf(error) } satisfies ReadingReport);

const opening = openLogForReading(workerData as Configuration, onError).catch((error: unknown) => {
  throw logFault('log_unavailable', messageOf(error));
});
const work = readingTasks(opening);

/** How long to wait for an unavailable store. */
const CLOSE_MS = 2_000;

const close = (): void => {
  port.close();
  setTimeout(() => process.exit(), CLOSE_MS).unref();
  void opening.then((log) => log.close()).catch(() => undefined);
};

port.on('message', (request: ReadingRequest) => {
  if (request === 'close') close();
  else void work(request.task, request.port);
});

// What has been asked for so far is answered with the reason. The next task starts another thread.
opening.catch((error: unknown) => {
  onError('The thread that reads the event log cannot open it.', error);
  port.close();
});
