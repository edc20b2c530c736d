import { findLog } from '../../projections/logs';
import { firstOf, type LoggedEvent, type Position, type TenantRevisions } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/streams';
import { START } from '../projecting/apply-events';
import type { TenantReader } from '../projecting/live-set';
import type { EventSource } from './event-source';
import type { Until } from './history';

const KINDS = ['tenant', 'activity'] as const;

/** The event at a position of the log: the last one of its stream up to there. */
const eventAt = async ({ log, streams }: LedgerLog, tenantId: string, position: Position) => {
  for (const kind of KINDS) {
    const stream = streams[kind](tenantId);
    const revision = await log.revisionAt(stream, position);
    const found = revision < 0 ? undefined : await firstOf(log.readStream(stream, revision - 1));
    if (found?.position === position) return found;
  }
  return undefined;
};

export interface WantedEvent extends Until {
  readonly tenantId: string;
  readonly id: string;
}

const searchAfter = async (
  { log, streams }: LedgerLog,
  { tenantId, id }: WantedEvent,
  after: TenantRevisions,
): Promise<LoggedEvent | undefined> => {
  for (const kind of KINDS)
    for await (const batch of log.readStream(streams[kind](tenantId), after[kind])) {
      const found = batch.find((event) => event.id === id);
      if (found !== undefined) return found;
    }
  return undefined;
};

/** Up to where the read models show the tenant, and where the event is, if they show it. */
export const knownPlace = async (reader: TenantReader, tenantId: string, eventId: string) => {
  // Read first: what is applied in the meantime is then searched as well, not missed.
  const [shown = START] = await reader.progress([tenantId]);
  return { shown, position: (await findLog(reader, tenantId, eventId))?.position };
};

/**
 * Finds an event of a tenant by its id. The read models know where each event is that was applied or skipped; only what
 * comes after those is searched.
 */
export const findEvent = async (
  { ledgerLog, readHistory }: Pick<EventSource, 'ledgerLog' | 'readHistory'>,
  { shown, position }: Awaited<ReturnType<typeof knownPlace>>,
  wanted: WantedEvent,
): Promise<LoggedEvent | undefined> => {
  const { tenantId } = wanted;
  if (position !== undefined) return eventAt(ledgerLog, tenantId, position);
  return readHistory(tenantId, wanted, (sliced) => searchAfter(sliced, wanted, shown));
};
