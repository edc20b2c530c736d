import { workerData } from 'node:worker_threads';
import { answerInThread, type Outcome } from '../../sqlite/thread';
import { openWriter, type WriteRequest } from './writer';

const writer = openWriter((workerData as { folder: string }).folder);

const attempt = (request: unknown): Outcome => {
  try {
    return { value: writer.write(request as WriteRequest) };
  } catch (error) {
    return { error };
  }
};

answerInThread({ answer: (requests) => requests.map(attempt), close: () => writer.close() });
