import { Empty, StreamIdentifier, UUID } from '@eventstore/db-client/generated/shared_pb';
import { BatchAppendReq } from '@eventstore/db-client/generated/streams_pb';
import { randomUUID } from 'node:crypto';
import { beforeDeadline, monotonicMs } from '../../async/clock';
import { repeated } from '../../async/repeated';
import { codeOf, fault, type Fault } from '../../fault';
import { TIMES } from '../../times';
import type { Appended, Expected } from '../event-log';
import type { Connection } from './connection';
import { appendFault, isNotLeader, noAnswer } from './errors';
import type { Serialised } from './record';

export interface AppendRequest {
  readonly stream: string;
  readonly events: readonly Serialised[];
  readonly expected: Expected;
}

/**
 * Without a deadline: the protocol expresses it as wall-clock time, and clocks differ. A caller that times out repeats
 * the append to learn its outcome.
 */
const optionsOf = ({ stream, expected }: AppendRequest): BatchAppendReq.Options => {
  const name = new StreamIdentifier().setStreamName(Uint8Array.from(Buffer.from(stream)));
  const options = new BatchAppendReq.Options().setStreamIdentifier(name);
  if (expected === 'no_stream') return options.setNoStream(new Empty());
  return options.setStreamPosition(String(expected));
};

const messageOf = ({ id, type, data, metadata }: Serialised): BatchAppendReq.ProposedMessage => {
  const message = new BatchAppendReq.ProposedMessage()
    .setId(new UUID().setString(id))
    .setData(data)
    .setCustomMetadata(metadata);
  message.getMetadataMap().set('type', type).set('content-type', 'application/json');
  return message;
};

const requestOf = (id: string, request: AppendRequest): BatchAppendReq =>
  new BatchAppendReq()
    .setCorrelationId(new UUID().setString(id))
    .setOptions(optionsOf(request))
    .setProposedMessagesList(request.events.map(messageOf))
    .setIsFinal(true);

const appendOnce = async (connection: Connection, request: AppendRequest, end: number, late: () => Fault) => {
  const { client, appends } = connection.current();
  const id = randomUUID();
  try {
    return await beforeDeadline(appends.send(id, request.stream, requestOf(id, request)), end, late);
  } catch (error) {
    if (codeOf(error) === 'no_answer') connection.renew(client);
    throw error;
  }
};

/** If the leader stepped down during an append, that may have been written. */
const orNoAnswer = (error: Fault, isUncertain: boolean): Fault =>
  isUncertain && error.code === 'log_unavailable' ? fault('no_answer', error.message) : error;

/** One attempt. Rejects with `no_answer` if the outcome is unknown. */
export const appending =
  (connection: Connection, request: AppendRequest) =>
  (withinMs: number): Promise<Appended> => {
    const end = monotonicMs() + withinMs;
    // A frozen server never answers.
    const late = () => noAnswer(`The event store did not answer within ${withinMs} ms.`);
    let isUncertain = false;
    return repeated(
      () => appendOnce(connection, request, end, late),
      (error) => {
        if (codeOf(error) === 'no_answer') return undefined;
        // The error names the leader, and the client has connected to it, aborting all calls in progress: what was sent
        // before may have been written.
        const givesUp = !isNotLeader(error) || monotonicMs() + TIMES.reconnectMs >= end;
        isUncertain ||= isNotLeader(error);
        if (givesUp) throw orNoAnswer(appendFault(request.stream, error), isUncertain);
        return TIMES.reconnectMs;
      },
    );
  };
