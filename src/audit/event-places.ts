import type { StreamKind } from '../domain/events';
import { firstOf, type LoggedEvent, type Position } from '../event-log/event-log';
import type { LedgerLog, Streams } from '../event-log/streams';

export type Place = Pick<LoggedEvent, 'stream' | 'revision' | 'position'>;

/**
 * A position as a tenant sees it, for example `tenant:12`: named by stream and revision, it reveals nothing about other
 * tenants and is the same in every copy of the log.
 */
export const tenantPosition = ({ stream, revision }: Place, streams: Streams): string =>
  `${streams.parse(stream)?.kind}:${revision}`;

const POSITION = /^(tenant|activity):(0|[1-9][0-9]{0,14})$/;

/** The event, if there is one, at a position that the tenant has seen, in this log or a copy. */
export const findPlace = async ({ log, streams }: LedgerLog, tenantId: string, position: string) => {
  const [, kind, digits] = POSITION.exec(position) ?? [];
  if (kind === undefined) return undefined;
  const revision = Number(digits);
  const found = await firstOf(log.readStream(streams[kind as StreamKind](tenantId), revision - 1));
  return found?.revision === revision ? found : undefined;
};

/** The last revision in each of a tenant's streams that has events. */
export type Revisions = Readonly<Record<StreamKind, number | undefined>>;

export const revisionsUpTo = async ({ log, streams }: LedgerLog, tenantId: string, position: Position) => {
  const lastOf = async (stream: string): Promise<number | undefined> => {
    const revision = await log.revisionAt(stream, position);
    return revision < 0 ? undefined : revision;
  };
  const tenant = await lastOf(streams.tenant(tenantId));
  return { tenant, activity: await lastOf(streams.activity(tenantId)) };
};
