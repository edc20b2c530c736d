import { workerData } from 'node:worker_threads';
import { answerInThread } from '../../src/async/thread';
import { appending, type AppenderFile } from '../../src/event-log/sqlite/sqlite-event-log';

/** A thread that appends to a log, as the writing thread of a service does. */
answerInThread(appending(workerData as AppenderFile));
