import type { EventStoreDBClient } from '@eventstore/db-client';
import type { StreamsClient } from '@eventstore/db-client/generated/streams_grpc_pb';
import type { CallOptions, Metadata } from '@grpc/grpc-js';

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
