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
const report = (message: WorkerReport): void => port.postMessage(message);

const onError = (what: string, error: unknown): void =>
  report({ type: 'error', what, code: codeOf(error) ?? 'failed', message: messageOf(error) });

/** The projections that a batch moved in one turn of the event loop, reported together. */
let moves: Move[] = [];
const reportMoves = (): void => {
  report({ type: 'moved', moves });
  moves = [];
};

const opening = openAll(async (closeLater) => {
  const { configuration, projections: names, holder } = workerData as Assignment;
  const stores = closeLater(await openStores(configuration, { use: 'worker', report: onError }));
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
  closeLater({ close: projecting.stop });
  await projecting.start();
});

opening.catch((error: unknown) => {
  onError('Projecting cannot begin and is tried again.', error);
  port.close();
});

/** How long to wait for an unavailable store. Exiting then is safe, because commits are atomic. */
const CLOSE_MS = 2_000;

port.on('message', () => {
  port.close();
  setTimeout(() => process.exit(), CLOSE_MS).unref();
  void opening.then((projector) => projector.close()).catch(() => undefined);
});
