import { parentPort, workerData } from 'node:worker_threads';
import { openProjector } from './app';
import type { Configuration } from './configuration';
import { codeOf, messageOf } from './fault';
import type { Told } from './projecting-thread';

const port = parentPort;
if (port === null) throw new Error('This belongs in a worker thread.');
const tell = (told: Told): void => port.postMessage(told);

const onTrouble = (what: string, error: unknown): void =>
  tell({ tell: 'trouble', what, code: codeOf(error) ?? 'failed', message: messageOf(error) });
const opening = openProjector(workerData as Configuration, onTrouble, (generation, position) =>
  tell({ tell: 'moved', generation, position }),
);

opening.catch((error: unknown) => {
  onTrouble('Projecting cannot begin and is tried again.', error);
  port.close();
});

port.on('message', () => {
  port.close();
  void opening.then((projector) => projector.close());
});
