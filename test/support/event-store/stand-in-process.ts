import { startStandIn } from './stand-in';

/**
 * The stand-in in a process of its own, for measurements: says its address, cuts its connections when told to, and ends
 * with whoever started it.
 */
const run = async (): Promise<void> => {
  const { url, gate } = await startStandIn();
  process.on('message', () => {
    gate.cut();
    process.send?.('cut');
  });
  process.on('disconnect', () => process.exit());
  process.send?.(url);
};

void run();
