import { pause } from '../clock';
import { holdWrites, resumeWrites } from '../sqlite/suspension';

/** Writes take milliseconds, except for building the indexes of a large read model, which nobody else uses yet. */
const MAX_WRITE_MS = 10_000;

/** A process that ignores the signal, like PID 1 of a container, continues after this time. */
const MAX_STOP_MS = 200;

/** Stops this process with the default action of the signal, as its shell expects. Resolves once it continues. */
const stopProcess = async (): Promise<void> => {
  const continued = new AbortController();
  const onContinue = (): void => continued.abort();
  process.once('SIGCONT', onContinue);
  process.kill(process.pid, 'SIGTSTP');
  await pause(MAX_STOP_MS, continued.signal);
  process.off('SIGCONT', onContinue);
};

/** On Ctrl-Z, finishes pending writes first, so that a stopped process holds no lock. */
export const suspendGracefully = (): void => {
  let isStopping = false;
  const onSignal = async (): Promise<void> => {
    if (isStopping) return;
    isStopping = true;
    await holdWrites(MAX_WRITE_MS);
    process.off('SIGTSTP', listen);
    await stopProcess();
    process.on('SIGTSTP', listen);
    resumeWrites();
    isStopping = false;
  };
  const listen = (): void => void onSignal();
  process.on('SIGTSTP', listen);
};
