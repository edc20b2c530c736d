import { startStandIn } from './stand-in';

/**
 * The stand-in in its own process, for measurements: prints its address, cuts its connections on command, and exits
 * with its parent.
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
