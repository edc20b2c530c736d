import { startStandIn } from './stand-in';

/** How often each reader has read each stream since the last order to count. */
export type StreamReads = readonly (readonly [reader: string, stream: string, count: number])[];

/**
 * The stand-in in its own process, for measurements: prints its address, on command cuts its connections or says what was
 * read, and exits with its parent.
 */
const run = async (): Promise<void> => {
  const reads = new Map<string, number>();
  const onStreamRead = (stream: string, reader: string): void => {
    const name = `${reader} ${stream}`;
    reads.set(name, (reads.get(name) ?? 0) + 1);
  };
  const countReads = (): StreamReads => {
    const counted = Array.from(
      reads,
      ([name, count]) => [...(name.split(' ') as [string, string]), count] as const,
    );
    reads.clear();
    return counted;
  };
  const { url, gate } = await startStandIn({ onStreamRead });
  process.on('message', (order: 'cut' | 'count') => {
    if (order === 'cut') gate.cut();
    process.send?.(order === 'cut' ? 'cut' : countReads());
  });
  process.on('disconnect', () => process.exit());
  process.send?.(url);
};

void run();
