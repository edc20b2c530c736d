import { pause } from '../clock';
import { holdWrites, resumeWrites } from '../sqlite/suspension';

/** What is written takes milliseconds, but for the indexes of a large read model that nobody else uses yet. */
const WRITES_MS = 10_000;

/** A process that may not be stopped, like the first one of a container, goes on after this time. */
const STOPPED_MS = 200;

/** Stops this process as its shell expects it, where that is allowed. Resolves when it goes on. */
const stopped = async (): Promise<void> => {
  const going = new AbortController();
  const goOn = (): void => going.abort();
  process.once('SIGCONT', goOn);
  process.kill(process.pid, 'SIGTSTP');
  await pause(STOPPED_MS, going.signal);
  process.off('SIGCONT', goOn);
};

/** Ctrl-Z: what is being written is finished first, so that no lock is held while the process is stopped. */
export const suspendInOrder = (): void => {
  let isStopping = false;
  const onSignal = async (): Promise<void> => {
    if (isStopping) return;
    isStopping = true;
    await holdWrites(WRITES_MS);
    process.off('SIGTSTP', listen);
    await stopped();
    process.on('SIGTSTP', listen);
    resumeWrites();
    isStopping = false;
  };
  const listen = (): void => void onSignal();
  process.on('SIGTSTP', listen);
};
