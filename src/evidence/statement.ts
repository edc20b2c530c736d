import { hash } from 'node:crypto';
import type { StreamKind } from '../domain/events';
import { isJsonObject, type LoggedEvent } from '../event-log/event-log';
import { canonicalJson } from './canonical-json';

/**
 * What a leaf of a tenant's evidence is made from. Permanent: a later form has a `v` of its own, in the metadata of the
 * events that use it.
 */
const VERSION = 1;

export type StatedEvent = Pick<LoggedEvent, 'id' | 'type' | 'revision' | 'recordedAt' | 'data' | 'metadata'>;

/** Bytes that are not JSON are shown in base64. */
export const jsonOf = (value: unknown): unknown =>
  Buffer.isBuffer(value) ? { base64: value.toString('base64') } : (value ?? null);

/** The digest of a key would tell whether a key that somebody found is this one; the digest of the digest does so, too, but opens nothing. */
export const publicData = (type: string, data: unknown): unknown => {
  if (type !== 'KeyAdded' || !isJsonObject(data) || typeof data['digest'] !== 'string') return jsonOf(data);
  const { digest, ...others } = data;
  return { ...others, digest_sha256: hash('sha256', digest) };
};

/** Without the name that an operator has on their machine. Of anything but an object, nothing is left out. */
export const withoutOsUser = (metadata: unknown): unknown => {
  if (!isJsonObject(metadata) || !isJsonObject(metadata['actor'])) return metadata;
  const { osUser: _, ...actor } = metadata['actor'];
  return { ...metadata, actor };
};

/** Addresses of clients and names of operators on their machines can be forgotten without breaking a proof. */
const provenMetadata = (metadata: unknown): unknown => {
  if (!isJsonObject(metadata)) return jsonOf(metadata ?? {});
  const { client: _client, clients: _clients, ...others } = metadata;
  return withoutOsUser(others);
};

/** The statement of an event, which everybody can make from a line of `/events` or of an export. */
export const statementOf = (tenantId: string, kind: StreamKind, event: StatedEvent): string => {
  const { id, type, revision, recordedAt, data, metadata } = event;
  return canonicalJson({
    v: VERSION,
    tenant_id: tenantId,
    stream_kind: kind,
    id,
    type,
    revision,
    recorded_at: recordedAt,
    data: publicData(type, data),
    metadata: provenMetadata(metadata),
  });
};
