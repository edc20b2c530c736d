import { Empty, StreamIdentifier, UUID } from '@eventstore/db-client/generated/shared_pb';
import { BatchAppendReq } from '@eventstore/db-client/generated/streams_pb';
import { randomUUID } from 'node:crypto';
import { monotonicMs, pause } from '../../clock';
import { codeOf, fault, type Fault } from '../../fault';
import type { Appended, Expected } from '../event-log';
import { appendFault, inTime, isNotLeader } from './answers';
import type { Connection } from './connection';
import type { Serialised } from './record';

/** An election may be under way. */
const REDIRECT_MS = 20;

/** The size of one message, if its events are small. */
const MESSAGE_BYTES = 524_288;

export interface AppendRequest {
  readonly stream: string;
  readonly events: readonly Serialised[];
  readonly expected: Expected;
}

/**
 * No deadline: the protocol has only a time of day, and clocks differ. A caller whose time is up sends the same append
 * again to find out.
 */
const optionsOf = ({ stream, expected }: AppendRequest): BatchAppendReq.Options => {
  const options = new BatchAppendReq.Options().setStreamIdentifier(
    new StreamIdentifier().setStreamName(Uint8Array.from(Buffer.from(stream))),
  );
  return expected === 'no_stream'
    ? options.setNoStream(new Empty())
    : options.setStreamPosition(String(expected));
};

const messageOf = ({ id, type, data, metadata }: Serialised): BatchAppendReq.ProposedMessage => {
  const message = new BatchAppendReq.ProposedMessage()
    .setId(new UUID().setString(id))
    .setData(data)
    .setCustomMetadata(metadata);
  message.getMetadataMap().set('type', type).set('content-type', 'application/json');
  return message;
};

const requestsOf = (id: string, request: AppendRequest): readonly BatchAppendReq[] => {
  const fresh = (): BatchAppendReq => new BatchAppendReq().setCorrelationId(new UUID().setString(id));
  const requests = [fresh().setOptions(optionsOf(request))];
  let bytes = 0;
  for (const event of request.events) {
    if (bytes > MESSAGE_BYTES) {
      requests.push(fresh());
      bytes = 0;
    }
    requests.at(-1)?.addProposedMessages(messageOf(event));
    bytes += event.data.length + event.metadata.length;
  }
  requests.at(-1)?.setIsFinal(true);
  return requests;
};

const once = async (connection: Connection, request: AppendRequest, withinMs: number): Promise<Appended> => {
  const { client, appends } = connection.current();
  const id = randomUUID();
  try {
    return await inTime(appends.send(id, request.stream, requestsOf(id, request)), withinMs);
  } catch (error) {
    if (codeOf(error) === 'no_answer') connection.renew(client);
    throw error;
  }
};

/** If a leader stepped down while an append was under way, it may have been written. */
const asUncertain = (error: Fault, unsure: boolean): Fault =>
  unsure && error.code === 'log_unavailable' ? fault('no_answer', error.message) : error;

/** One attempt: it rejects with `no_answer` when it does not know what became of it. */
export const appending =
  (connection: Connection, request: AppendRequest) =>
  async (withinMs: number): Promise<Appended> => {
    const end = monotonicMs() + withinMs;
    let unsure = false;
    for (;;)
      try {
        return await once(connection, request, Math.max(1, end - monotonicMs()));
      } catch (error) {
        if (codeOf(error) === 'no_answer') throw error;
        // The error names the leader, and the client has connected to it. It ends everything that was under way: what was
        // sent before may have been written.
        const isLost = !isNotLeader(error) || monotonicMs() + REDIRECT_MS >= end;
        unsure ||= isNotLeader(error);
        if (isLost) throw asUncertain(appendFault(request.stream, error), unsure);
        await pause(REDIRECT_MS);
      }
  };
