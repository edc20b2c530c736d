import { Metadata, type ServiceError } from '@grpc/grpc-js';
import { Empty, StreamIdentifier, UUID } from '@eventstore/db-client/generated/shared_pb';
import { AppendReq, AppendResp, ReadResp } from '@eventstore/db-client/generated/streams_pb';
import type { ExpectedRevision, Proposed, StoredRecord, Verdict } from './stored-log';

/** The words of the protocol, as the package's own generated definitions spell them. */

const utf8 = (bytes: Uint8Array | string): string =>
  typeof bytes === 'string'
    ? Buffer.from(bytes, 'base64').toString('utf8')
    : Buffer.from(bytes).toString('utf8');

export const nameOf = (identifier: StreamIdentifier | undefined): string =>
  utf8(identifier?.getStreamName_asU8() ?? new Uint8Array());

const identifier = (stream: string): StreamIdentifier =>
  new StreamIdentifier().setStreamName(Uint8Array.from(Buffer.from(stream)));

/** [source] Ids come back in lower case: they are numbers to the server. */
export const proposedOf = (message: AppendReq.ProposedMessage): Proposed => ({
  id: (message.getId()?.getString() ?? '').toLowerCase(),
  type: message.getMetadataMap().get('type') ?? '',
  contentType: message.getMetadataMap().get('content-type') ?? '',
  data: message.getData_asU8(),
  metadata: message.getCustomMetadata_asU8(),
});

export const expectedOf = (options: AppendReq.Options): ExpectedRevision => {
  if (options.hasRevision()) return BigInt(options.getRevision());
  if (options.hasNoStream()) return 'no_stream';
  return options.hasStreamExists() ? 'stream_exists' : 'any';
};

/** [seen] A wrong revision is an answer and no error; a missing stream has no current revision. */
export const answerTo = (verdict: Verdict, expected: ExpectedRevision): AppendResp => {
  const answer = new AppendResp();
  if (verdict.kind !== 'wrong_revision') {
    const place = String(verdict.position);
    const position = new AppendResp.Position().setCommitPosition(place).setPreparePosition(place);
    const success = new AppendResp.Success().setCurrentRevision(String(verdict.revision));
    return answer.setSuccess(success.setPosition(position));
  }
  const wrong = new AppendResp.WrongExpectedVersion();
  if (verdict.actual < 0) wrong.setCurrentNoStream(new Empty());
  else wrong.setCurrentRevision(String(verdict.actual));
  if (typeof expected === 'bigint') wrong.setExpectedRevision(String(expected));
  else if (expected === 'no_stream') wrong.setExpectedNoStream(new Empty());
  else wrong.setExpectedAny(new Empty());
  return answer.setWrongExpectedVersion(wrong);
};

/** [source] `created` is in ticks of 100 ns since 1970. */
export const eventOf = (record: StoredRecord): ReadResp => {
  const place = String(record.position);
  const recorded = new ReadResp.ReadEvent.RecordedEvent()
    .setId(new UUID().setString(record.id))
    .setStreamIdentifier(identifier(record.stream))
    .setStreamRevision(String(record.revision))
    .setCommitPosition(place)
    .setPreparePosition(place)
    .setData(record.data)
    .setCustomMetadata(record.metadata);
  recorded.getMetadataMap().set('type', record.type);
  recorded.getMetadataMap().set('content-type', record.contentType);
  recorded.getMetadataMap().set('created', String(BigInt(record.created) * 10_000n));
  return new ReadResp().setEvent(new ReadResp.ReadEvent().setEvent(recorded).setCommitPosition(place));
};

export const notFound = (stream: string): ReadResp =>
  new ReadResp().setStreamNotFound(new ReadResp.StreamNotFound().setStreamIdentifier(identifier(stream)));

export const confirmation = (id: string): ReadResp =>
  new ReadResp().setConfirmation(new ReadResp.SubscriptionConfirmation().setSubscriptionId(id));

export const checkpoint = (position: bigint): ReadResp =>
  new ReadResp().setCheckpoint(
    new ReadResp.Checkpoint().setCommitPosition(String(position)).setPreparePosition(String(position)),
  );

export const caughtUp = (): ReadResp => new ReadResp().setCaughtUp(new ReadResp.CaughtUp());

/** An error with what the client package looks at: the trailer `exception`. */
export const rpcError = (
  code: number,
  details: string,
  trailers: Readonly<Record<string, string>> = {},
): ServiceError => {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(trailers)) metadata.set(name, value);
  return Object.assign(new Error(details), { code, details, metadata, name: 'ServiceError' });
};
