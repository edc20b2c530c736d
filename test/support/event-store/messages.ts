import {
  AllStreamPosition,
  Empty,
  MaximumAppendSizeExceeded,
  StreamDeleted,
  StreamIdentifier,
  Timeout,
  UUID,
  WrongExpectedVersion,
} from '@eventstore/db-client/generated/shared_pb';
import { Status } from '@eventstore/db-client/generated/status_pb';
import { BatchAppendResp, ReadResp, type BatchAppendReq } from '@eventstore/db-client/generated/streams_pb';
import { Metadata } from '@grpc/grpc-js';
import type { Message } from 'google-protobuf';
import { Any } from 'google-protobuf/google/protobuf/any_pb';
import type { ExpectedRevision, Proposed, StoredRecord, Verdict } from './stored-log';

/** The messages of the protocol, as the package's own generated definitions spell them. */

const utf8 = (bytes: Uint8Array | string): string =>
  typeof bytes === 'string'
    ? Buffer.from(bytes, 'base64').toString('utf8')
    : Buffer.from(bytes).toString('utf8');

export const nameOf = (identifier: StreamIdentifier | undefined): string =>
  utf8(identifier?.getStreamName_asU8() ?? new Uint8Array());

const identifier = (stream: string): StreamIdentifier =>
  new StreamIdentifier().setStreamName(Uint8Array.from(Buffer.from(stream)));

/** [source] Ids are returned in lower case: to the server they are numbers. */
export const proposedOf = (message: BatchAppendReq.ProposedMessage): Proposed => ({
  id: (message.getId()?.getString() ?? '').toLowerCase(),
  type: message.getMetadataMap().get('type') ?? '',
  contentType: message.getMetadataMap().get('content-type') ?? '',
  data: message.getData_asU8(),
  metadata: message.getCustomMetadata_asU8(),
});

export const expectedOf = (options: BatchAppendReq.Options): ExpectedRevision => {
  if (options.hasStreamPosition()) return BigInt(options.getStreamPosition());
  if (options.hasNoStream()) return 'no_stream';
  return options.hasStreamExists() ? 'stream_exists' : 'any';
};

const written = (revision: number, position: bigint): BatchAppendResp => {
  const place = new AllStreamPosition()
    .setCommitPosition(String(position))
    .setPreparePosition(String(position));
  return new BatchAppendResp().setSuccess(
    new BatchAppendResp.Success().setCurrentRevision(String(revision)).setPosition(place),
  );
};

/** [source] Errors are sent as a google.rpc.Status with one detail, whose type names the error. */
const wrong = (name: string, detail: Message, words: string): BatchAppendResp => {
  const any = new Any();
  any.pack(detail.serializeBinary(), `event_store.client.${name}`);
  return new BatchAppendResp().setError(new Status().setMessage(words).setDetails(any));
};

/** [seen] A missing stream has no current revision. */
export const answerTo = (verdict: Verdict, expected: ExpectedRevision): BatchAppendResp => {
  if (verdict.kind === 'deleted')
    return wrong('StreamDeleted', new StreamDeleted(), 'Event stream is deleted.');
  if (verdict.kind !== 'wrong_revision') return written(verdict.revision, verdict.position);
  const detail = new WrongExpectedVersion();
  if (verdict.actual < 0) detail.setCurrentNoStream(new Empty());
  else detail.setCurrentStreamRevision(String(verdict.actual));
  if (typeof expected === 'bigint') detail.setExpectedStreamPosition(String(expected));
  else if (expected === 'no_stream') detail.setExpectedNoStream(new Empty());
  else detail.setExpectedAny(new Empty());
  return wrong('WrongExpectedVersion', detail, 'WrongExpectedVersion');
};

export const tooLarge = (max: number): BatchAppendResp =>
  wrong('MaximumAppendSizeExceeded', new MaximumAppendSizeExceeded().setMaxappendsize(max), 'Too large');

export const timedOut = (): BatchAppendResp => wrong('Timeout', new Timeout(), 'Timeout');

export const strange = (): BatchAppendResp => new BatchAppendResp().setError(new Status().setMessage('Bad'));

/** [source] A server that is not ready says so only in the message. */
export const notHandled = (words: string): BatchAppendResp => wrong('Nothing', new Empty(), words);

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

/** An error with the part that the client package looks at: the trailer `exception`. */
export const rpcError = (code: number, details: string, trailers: Readonly<Record<string, string>> = {}) => {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(trailers)) metadata.set(name, value);
  return Object.assign(new Error(details), { code, details, metadata, name: 'ServiceError' });
};
