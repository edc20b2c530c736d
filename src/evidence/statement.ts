import { createHash } from 'node:crypto';
import type { StreamKind } from '../domain/events';
import { canonicalJson } from './canonical-json';

/** What leaves are made from is permanent: a later form has a `v` of its own, in the metadata of its events. */
const VERSION = 1;

/** An event as it is stored. What is not JSON is a Buffer. */
export interface StatedEvent {
  readonly id: string;
  readonly type: string;
  readonly revision: number;
  readonly recordedAt: string;
  readonly data: unknown;
  readonly metadata: unknown;
}

type Members = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !Buffer.isBuffer(value);

const jsonOf = (value: unknown): unknown =>
  Buffer.isBuffer(value) ? { base64: value.toString('base64') } : (value ?? null);

/** The digest of a key would tell whether a key that somebody found is this one; the digest of the digest does so, too, but opens nothing. */
export const publicData = (type: string, data: unknown): unknown => {
  if (type !== 'KeyAdded' || !isObject(data) || typeof data['digest'] !== 'string') return jsonOf(data);
  const { digest, ...others } = data;
  return {
    ...others,
    digest_sha256: createHash('sha256').update(digest).digest('hex'),
  };
};

/** Addresses of clients and names of operators on their machines can be forgotten without breaking a proof. */
const provenMetadata = (metadata: unknown): unknown => {
  if (!isObject(metadata)) return jsonOf(metadata ?? {});
  const { client: _client, clients: _clients, ...others } = metadata;
  if (!isObject(others['actor'])) return others;
  const { osUser: _osUser, ...actor } = others['actor'];
  return { ...others, actor };
};

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
