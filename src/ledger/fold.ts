import { absent, evolve, type Tenant } from '../domain/tenant';
import { fault } from '../fault';
import { decode } from '../event-log/decode';
import type { LoggedEvent } from '../event-log/event-log';
import { gapBefore } from '../event-log/gap';
import type { Streams } from '../event-log/streams';
import { rememberReply, type Replies } from './replies';

/** A tenant's stream, folded up to a revision. */
export interface Fold {
  /** -1 while there is no stream. */
  readonly revision: number;
  readonly eventId: string;
  readonly tenant: Tenant;
  readonly replies: Replies;
}

/** Raise it whenever the same events would fold to something else: older snapshots are then left aside. */
export const FOLD_VERSION = 2;

export const emptyFold = (): Fold => ({ revision: -1, eventId: '', tenant: absent, replies: new Map() });

/** A stream that cannot be read must not be decided on: it may hold a revocation. */
export const unreadable = (tenantId: string, event: LoggedEvent, reason: string) =>
  fault('tenant_unreadable', `The history of tenant ${tenantId} cannot be read. ${reason}`, {
    tenantId,
    eventId: event.id,
    position: event.position,
    reason,
  });

/** Folds the next events, which must follow without a gap. The given fold must not be used afterwards: its replies have moved on. */
export const foldOn = (
  fold: Fold,
  events: readonly LoggedEvent[],
  tenantId: string,
  streams: Streams,
): Fold => {
  let { tenant, revision } = fold;
  for (const logged of events) {
    const gap = gapBefore(logged, revision);
    if (gap !== undefined) throw unreadable(tenantId, logged, gap);
    const decoded = decode(logged, streams);
    if (decoded.status !== 'good' || decoded.kind !== 'tenant')
      throw unreadable(tenantId, logged, decoded.status === 'bad' ? decoded.reason : 'It is not ours.');
    try {
      tenant = evolve(tenant, decoded.event);
    } catch (error) {
      throw unreadable(tenantId, logged, (error as Error).message);
    }
    rememberReply(fold.replies, decoded.event);
    ({ revision } = logged);
  }
  const last = events.at(-1);
  return last === undefined
    ? fold
    : { revision: last.revision, eventId: last.id, tenant, replies: fold.replies };
};

/** What a cached fold weighs: roughly how many small objects it holds. */
export const weightOf = ({ tenant, replies }: Fold): number =>
  1 + replies.size + (tenant.status === 'absent' ? 0 : tenant.applications.size + tenant.keys.size);

const mapsAsLists = (_: string, value: unknown): unknown =>
  value instanceof Map ? { map: [...value] } : value;
const listsAsMaps = (_: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && 'map' in value && Array.isArray(value.map)
    ? new Map(value.map as [unknown, unknown][])
    : value;

export const foldToText = (fold: Fold): string => JSON.stringify(fold, mapsAsLists);

const isFold = (value: Partial<Fold> | null): value is Fold =>
  typeof value?.revision === 'number' &&
  typeof value.eventId === 'string' &&
  value.tenant !== undefined &&
  value.replies instanceof Map;

/** Undefined when it is the text of something else. */
export const foldFromText = (text: string): Fold | undefined => {
  const value = JSON.parse(text, listsAsMaps) as Partial<Fold> | null;
  return isFold(value) ? value : undefined;
};
