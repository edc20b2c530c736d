import { randomUUID } from 'node:crypto';
import type { EventLog } from '../../src/event-log/event-log';
import type { Streams } from '../../src/event-log/streams';
import { isCampaign, saysHowFar } from './campaign';

const APPEND_MS = isCampaign ? 600_000 : 30_000;

/**
 * Facts of many tenants, interleaved as in the log of a busy service. Recorded long ago, so that a recorded time taken
 * from the clock again would be noticed.
 */
export const fillBusyLog = async (
  { log, streams }: { readonly log: EventLog; readonly streams: Streams },
  count: number,
  tenants = 50,
): Promise<void> => {
  const names = Array.from({ length: tenants }, () => streams.activity(randomUUID()));
  const appendRound = (round: number, size: number): Promise<unknown> =>
    Promise.all(
      names.slice(0, size).map((stream, at) => {
        const number = round * tenants + at;
        const event = {
          id: randomUUID(),
          type: 'TokenCreated',
          data: { entityId: `tok_${number}`, note: 'Ω'.repeat(number % 90) },
          metadata: { version: 1, traceId: `trace-${number}` },
          recordedAt: new Date(1_700_000_000_000 + number * 13).toISOString(),
        };
        return log.append(stream, [event], round === 0 ? 'no_stream' : round - 1, APPEND_MS);
      }),
    );
  const saysDone = saysHowFar('events appended', count);
  for (let round = 0; round * tenants < count; round += 1) {
    await appendRound(round, Math.min(tenants, count - round * tenants));
    saysDone(Math.min(count, (round + 1) * tenants));
  }
};
