import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { BroadcastChannel, isMainThread } from 'node:worker_threads';

/**
 * Loaded into every thread of a server before anything else: on SIGUSR2 each of them collects garbage and says what it
 * still uses, and the main thread reports the sum, and the memory of the process.
 */
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const channel = new BroadcastChannel('heap');
channel.unref();

const used = (): number => {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

if (isMainThread) {
  let others = 0;
  channel.addEventListener('message', (event) => (others += Number((event as MessageEvent).data)));
  process.on('SIGUSR2', () => {
    others = 0;
    channel.postMessage('say');
    collect();
    setTimeout(() => {
      const report = { used: used(), others, rss: process.memoryUsage().rss };
      process.stderr.write(`${JSON.stringify(report)}\n`);
    }, 500);
  });
} else channel.addEventListener('message', () => channel.postMessage(used()));
