import { startStandIn } from './stand-in';

/** The stand-in in a process of its own, for measurements: says its address, and ends with whoever started it. */
const run = async (): Promise<void> => {
  const { url } = await startStandIn();
  process.on('disconnect', () => process.exit());
  process.send?.(url);
};

void run();
