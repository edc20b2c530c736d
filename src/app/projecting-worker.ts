import { parentPort, workerData } from 'node:worker_threads';
import { projections } from '../../projections/projections';
import { codeOf, messageOf } from '../fault';
import { openProjecting } from '../projecting/projecting';
import { programVersion } from '../version';
import { openStores } from './adapters';
import { openAll } from './open-all';
import type { Assignment, Move, WorkerReport } from './projecting-workers';

const port = parentPort;
if (port === null) throw new Error('This belongs in a worker thread.');
const report = (one: WorkerReport): void => port.postMessage(one);

const onError = (what: string, error: unknown): void =>
  report({ type: 'error', what, code: codeOf(error) ?? 'failed', message: messageOf(error) });

/** What a batch has moved, in one turn of the event loop, is reported together. */
let moves: Move[] = [];
const reportMoves = (): void => {
  report({ type: 'moved', moves });
  moves = [];
};

/** Projects until it is closed. */
const opening = openAll(async (closing) => {
  const { configuration, projections: names, holder } = workerData as Assignment;
  const stores = closing(await openStores(configuration, { use: 'worker', report: onError }));
  const projecting = await openProjecting({
    ...stores,
    projectors: projections.filter(({ name }) => names.includes(name)),
    program: programVersion(),
    holder,
    onError,
    onMoved: (...move) => {
      if (moves.push(move) === 1) setImmediate(reportMoves);
    },
    onParked: (parked) => report({ type: 'parked', ...parked }),
  });
  closing({ close: projecting.stop });
  await projecting.start();
});

opening.catch((error: unknown) => {
  onError('Projecting cannot begin and is tried again.', error);
  port.close();
});

/** Waiting for a store that is unavailable ends then. Nothing is lost: commits are whole or not there. */
const CLOSE_MS = 2_000;

port.on('message', () => {
  port.close();
  setTimeout(() => process.exit(), CLOSE_MS).unref();
  void opening.then((projector) => projector.close()).catch(() => undefined);
});
