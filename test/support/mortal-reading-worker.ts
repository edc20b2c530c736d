import { parentPort } from 'node:worker_threads';

/** A reading thread that dies of its first task. */
parentPort?.on('message', (message) => {
  if (message === 'close') return parentPort?.close();
  throw new Error('It was too much.');
});
