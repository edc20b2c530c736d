import type { EventStoreDBClient } from '@eventstore/db-client';
import type { StreamsClient } from '@eventstore/db-client/generated/streams_grpc_pb';
import type { CallOptions, Metadata } from '@grpc/grpc-js';

/** Members that the package keeps for its subclasses, but it creates none of those from a connection string. */
interface Insides {
  readonly capabilities: Promise<{ readonly serverVersion: string }>;
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

export const insidesOf = (client: EventStoreDBClient): Insides => client as unknown as Insides;
