import { convertToCommandError, type EventStoreDBClient } from '@eventstore/db-client';
import { unpackToCommandError } from '@eventstore/db-client/dist/streams/appendToStream/unpackError';
import { StreamsClient } from '@eventstore/db-client/generated/streams_grpc_pb';
import { type BatchAppendReq, type BatchAppendResp } from '@eventstore/db-client/generated/streams_pb';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import type { Appended } from '../event-log';
import { noAnswer } from './answers';
import { insidesOf } from './client-insides';
import { positionOf } from './record';

/**
 * Sends all appends of one client through one call that stays open. The package has such a stream too, but keeps the pending
 * appends of all its streams in one table: when one stream breaks, the appends of the others are rejected, and their late
 * answers are exceptions that nobody can catch. Here every stream has its own.
 */
export interface AppendStream {
  /** The requests of one append, the last of them final. Rejects when the stream breaks before the answer. */
  send(id: string, stream: string, requests: readonly BatchAppendReq[]): Promise<Appended>;
  close(): void;
}

type Call = ClientDuplexStream<BatchAppendReq, BatchAppendResp>;

interface Waiting {
  readonly stream: string;
  resolve(appended: Appended): void;
  reject(error: Error): void;
}

interface Open {
  readonly call: Call;
  readonly waiting: Map<string, Waiting>;
}

const settle = ({ stream, resolve, reject }: Waiting, answer: BatchAppendResp): void => {
  const error = answer.getError();
  if (error !== undefined)
    return reject(error.hasDetails() ? unpackToCommandError(error, stream) : new Error(error.getMessage()));
  const success = answer.getSuccess();
  const position = success?.getPosition();
  if (success === undefined || position === undefined)
    return reject(noAnswer('The event store did not report the position of the append.'));
  resolve({
    revision: Number(success.getCurrentRevision()),
    position: positionOf(BigInt(position.getCommitPosition())),
  });
};

export const appendStream = (client: EventStoreDBClient): AppendStream => {
  const insides = insidesOf(client);
  let opening: Promise<Open> | undefined;

  const open = async (): Promise<Open> => {
    const grpc = await insides.getGRPCClient(StreamsClient, 'append');
    const call = grpc.batchAppend(
      ...insides.callArguments({ requiresLeader: true }, { deadline: Infinity }),
    ) as Call;
    const waiting = new Map<string, Waiting>();
    const over = (error: Error): void => {
      opening = undefined;
      for (const one of waiting.values()) one.reject(convertToCommandError(error));
      waiting.clear();
    };
    call.on('data', (answer: BatchAppendResp) => {
      const id = answer.getCorrelationId()?.getString().toLowerCase() ?? '';
      const one = waiting.get(id);
      waiting.delete(id);
      // A caller that no longer waits already knows that there is no answer.
      if (one !== undefined) settle(one, answer);
    });
    call.on('end', () => over(new Error('The event store ended the appends.')));
    call.on('error', (error: Error) => {
      over(error);
      // This moves the client to another server, or to the leader if the error names one.
      insides.handleError(grpc, error).catch(() => undefined);
    });
    return { call, waiting };
  };

  return {
    send: async (id, stream, requests) => {
      opening ??= open().catch((error: unknown) => {
        opening = undefined;
        throw error;
      });
      const { call, waiting } = await opening;
      return new Promise((resolve, reject) => {
        waiting.set(id, { stream, resolve, reject });
        for (const request of requests) call.write(request);
      });
    },
    close: () => {
      opening?.then(({ call }) => call.cancel()).catch(() => undefined);
    },
  };
};
