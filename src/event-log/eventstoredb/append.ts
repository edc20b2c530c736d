import { NO_STREAM, type EventData } from '@eventstore/db-client';
import { monotonicMs, pause } from '../../clock';
import { codeOf } from '../../fault';
import type { Appended, Expected } from '../event-log';
import { appendFault, inTime, isNotLeader, noAnswer } from './answers';
import type { Connection } from './connection';
import { positionOf } from './record';
import { fromLeader } from './stream-reader';

/** An election may be under way. */
const REDIRECT_MS = 20;

export interface AppendRequest {
  readonly stream: string;
  readonly events: readonly EventData[];
  readonly expected: Expected;
}

const once = async (
  connection: Connection,
  { stream, events, expected }: AppendRequest,
  withinMs: number,
): Promise<Appended> => {
  const client = connection.client();
  const call = client.appendToStream(stream, [...events], {
    expectedRevision: expected === 'no_stream' ? NO_STREAM : BigInt(expected),
    deadline: withinMs,
    ...fromLeader,
  });
  try {
    const { nextExpectedRevision, position } = await inTime(call, withinMs);
    if (position === undefined) throw noAnswer('The event store did not say where it wrote.');
    return { revision: Number(nextExpectedRevision), position: positionOf(position.commit) };
  } catch (error) {
    if (codeOf(error) === 'no_answer') connection.renew(client);
    throw error;
  }
};

/** One attempt: it rejects with `no_answer` when it does not know what became of it. */
export const appending =
  (connection: Connection, request: AppendRequest) =>
  async (withinMs: number): Promise<Appended> => {
    const end = monotonicMs() + withinMs;
    for (;;)
      try {
        return await once(connection, request, Math.max(1, end - monotonicMs()));
      } catch (error) {
        if (codeOf(error) === 'no_answer') throw error;
        // It names the leader, and the package has turned to that one; nothing was written.
        if (!isNotLeader(error) || monotonicMs() + REDIRECT_MS >= end)
          throw appendFault(request.stream, error);
        await pause(REDIRECT_MS);
      }
  };
