import { shortDigest } from '../domain/key-format';
import type { LoggedEvent } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { isJsonObject } from '../json';

const withShortDigest = (data: Readonly<Record<string, unknown>>): unknown => {
  const { digest } = data;
  return typeof digest === 'string' ? { ...data, digest: shortDigest(digest) } : data;
};

/** Bytes that are not JSON are shown in base64. */
const shown = (value: unknown): unknown => {
  if (Buffer.isBuffer(value)) return { base64: value.toString('base64') };
  return isJsonObject(value) ? withShortDigest(value) : (value ?? null);
};

/** The time used by `/logs` and everything else derived from events. */
export const timeOf = ({ recordedAt, storedAt = recordedAt }: LoggedEvent): string => storedAt;

/**
 * An event with everything that is stored, in the names of the API. Absent members are undefined, and so omitted from the
 * JSON, rather than missing: objects of one shape are serialised fastest.
 */
export const rawEvent = (event: LoggedEvent, streams: Streams) => {
  const metadata = isJsonObject(event.metadata) ? event.metadata : {};
  const { version, actor, traceId, keyId } = metadata;
  return {
    id: event.id,
    type: event.type,
    version: typeof version === 'number' ? version : 1,
    tenant_id: streams.parse(event.stream)?.tenantId, // none in the operator's own stream
    stream: event.stream,
    revision: event.revision,
    position: event.position,
    recorded_at: event.recordedAt,
    stored_at: event.storedAt,
    actor,
    trace_id: traceId,
    key_id: keyId,
    data: shown(event.data),
    metadata: shown(event.metadata ?? {}),
  };
};

export type RawEvent = ReturnType<typeof rawEvent>;
