import { convertToCommandError, type EventStoreDBClient } from '@eventstore/db-client';
import { unpackToCommandError } from '@eventstore/db-client/dist/streams/appendToStream/unpackError';
import { StreamsClient } from '@eventstore/db-client/generated/streams_grpc_pb';
import type { BatchAppendReq, BatchAppendResp } from '@eventstore/db-client/generated/streams_pb';
import type { CallOptions, ClientDuplexStream, Metadata } from '@grpc/grpc-js';
import type { Appended } from '../event-log';
import { noAnswer } from './errors';
import { positionOf } from './record';

/** Protected members of the package's client. A subclass could use them, but the package cannot create one from a URL. */
interface Internals {
  createChannel: () => Promise<{ close(): void }>;
  handleError: (client: StreamsClient, error: Error) => Promise<void>;
  getGRPCClient(kind: typeof StreamsClient, what: string): Promise<StreamsClient>;
  GRPCStreamCreator<Call>(
    kind: typeof StreamsClient,
    what: string,
    call: (client: StreamsClient) => Call,
  ): () => Promise<Call>;
  callArguments(options: { requiresLeader: boolean }, more: CallOptions): [Metadata, CallOptions];
}

export const internalsOf = (client: EventStoreDBClient): Internals => client as unknown as Internals;

type Call = ClientDuplexStream<BatchAppendReq, BatchAppendResp>;

interface Pending {
  readonly stream: string;
  resolve(appended: Appended): void;
  reject(error: Error): void;
}

interface Open {
  readonly call: Call;
  readonly pending: Map<string, Pending>;
}

const settle = ({ stream, resolve, reject }: Pending, answer: BatchAppendResp): void => {
  const error = answer.getError();
  if (error !== undefined)
    return reject(error.hasDetails() ? unpackToCommandError(error, stream) : new Error(error.getMessage()));
  const success = answer.getSuccess();
  const position = success?.getPosition();
  if (success === undefined || position === undefined)
    return reject(noAnswer('The event store did not report the position of the append.'));
  const commit = BigInt(position.getCommitPosition());
  resolve({ revision: Number(success.getCurrentRevision()), position: positionOf(commit) });
};

/**
 * Sends all appends of one client over one long-lived call. The package can do that too, but keeps the pending appends
 * of all its streams in one table: when one stream breaks, it rejects the appends of the others as well, and their late
 * answers throw where no one can catch. Here every stream has its own table.
 */
export const appendStream = (client: EventStoreDBClient) => {
  const internals = internalsOf(client);
  let opening: Promise<Open> | undefined;

  const open = async (): Promise<Open> => {
    const grpc = await internals.getGRPCClient(StreamsClient, 'append');
    const call = grpc.batchAppend(
      ...internals.callArguments({ requiresLeader: true }, { deadline: Infinity }),
    ) as Call;
    const pending = new Map<string, Pending>();
    const fail = (error: Error): void => {
      opening = undefined;
      for (const append of pending.values()) append.reject(convertToCommandError(error));
      pending.clear();
    };
    call.on('data', (answer: BatchAppendResp) => {
      const id = answer.getCorrelationId()?.getString().toLowerCase() ?? '';
      const append = pending.get(id);
      pending.delete(id);
      // Missing if `fail` has already rejected it.
      if (append !== undefined) settle(append, answer);
    });
    call.on('end', () => fail(new Error('The event store closed the append stream.')));
    call.on('error', (error: Error) => {
      fail(error);
      // Makes the client connect to another server, or to the leader if the error names it.
      internals.handleError(grpc, error).catch(() => undefined);
    });
    return { call, pending };
  };

  return {
    /** Rejects if the stream breaks before the answer. */
    send: async (id: string, stream: string, request: BatchAppendReq): Promise<Appended> => {
      opening ??= open().catch((error: unknown) => {
        opening = undefined;
        throw error;
      });
      const { call, pending } = await opening;
      return new Promise((resolve, reject) => {
        pending.set(id, { stream, resolve, reject });
        call.write(request);
      });
    },
    close: (): void => {
      opening?.then(({ call }) => call.cancel()).catch(() => undefined);
    },
  };
};

export type AppendStream = ReturnType<typeof appendStream>;
