import type { AllStreamResolvedEvent, EventStoreDBClient } from '@eventstore/db-client';
import { ReadStream } from '@eventstore/db-client/dist/streams/utils/ReadStream';
import { convertGrpcEvent } from '@eventstore/db-client/dist/utils/convertGrpcEvent';
import { Empty } from '@eventstore/db-client/generated/shared_pb';
import { StreamsClient } from '@eventstore/db-client/generated/streams_grpc_pb';
import { ReadReq } from '@eventstore/db-client/generated/streams_pb';
import type { Position } from '../event-log';
import { internalsOf } from './append-stream';

/**
 * Reads $all backwards through a filter, which the protocol supports but the package does not. The server skips other
 * programs' events about thirty times faster than it would send them.
 */
interface FilteredRead {
  readonly before: Position;
  readonly maxCount: number;
  readonly prefixes: readonly string[];
  /** How many events the server scans at a time. */
  readonly window: number;
}

const filterOf = ({ prefixes, window }: FilteredRead): ReadReq.Options.FilterOptions => {
  const names = new ReadReq.Options.FilterOptions.Expression().setPrefixList([...prefixes]);
  return new ReadReq.Options.FilterOptions()
    .setStreamIdentifier(names)
    .setMax(window)
    .setCheckpointintervalmultiplier(1);
};

const requestOf = (read: FilteredRead): ReadReq => {
  const offset = BigInt(read.before).toString();
  const position = new ReadReq.Options.Position().setCommitPosition(offset).setPreparePosition(offset);
  const options = new ReadReq.Options()
    .setAll(new ReadReq.Options.AllOptions().setPosition(position))
    .setReadDirection(ReadReq.Options.ReadDirection.BACKWARDS)
    .setCount(String(read.maxCount))
    .setUuidOption(new ReadReq.Options.UUIDOption().setString(new Empty()))
    .setFilter(filterOf(read));
  return new ReadReq().setOptions(options);
};

export const filteredRead = (client: EventStoreDBClient, read: FilteredRead) => {
  const internals = internalsOf(client);
  const request = requestOf(read);
  const open = internals.GRPCStreamCreator(StreamsClient, 'readAll', (grpc) =>
    grpc.read(request, ...internals.callArguments({ requiresLeader: true }, { deadline: Infinity })),
  );
  return new ReadStream<AllStreamResolvedEvent>(open, convertGrpcEvent, {});
};
