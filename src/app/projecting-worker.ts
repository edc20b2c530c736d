import { parentPort, workerData } from 'node:worker_threads';
import { openProjector } from './app';
import { codeOf, messageOf } from '../fault';
import type { Assignment, Report } from './projecting-workers';

const port = parentPort;
if (port === null) throw new Error('This belongs in a worker thread.');
const report = (one: Report): void => port.postMessage(one);

const onTrouble = (what: string, error: unknown): void =>
  report({ type: 'trouble', what, code: codeOf(error) ?? 'failed', message: messageOf(error) });
const opening = openProjector(workerData as Assignment, {
  onTrouble,
  onMoved: (generation, position) => report({ type: 'moved', generation, position }),
  onParked: (parked) => report({ type: 'parked', ...parked }),
});

opening.catch((error: unknown) => {
  onTrouble('Projecting cannot begin and is tried again.', error);
  port.close();
});

port.on('message', () => {
  port.close();
  void opening.then((projector) => projector.close()).catch(() => undefined);
});
