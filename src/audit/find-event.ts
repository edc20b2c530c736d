import { findLogPosition } from '../../projections/logs';
import type { Reader } from '../../projections/projector';
import { firstOf, type LoggedEvent, type Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/streams';
import { lastRevision } from '../projecting/parked-tenants';
import type { EventSource } from './event-source';
import type { Until } from './history';

const KINDS = ['tenant', 'activity'] as const;

/** The event at a position of the log: the last one of its stream up to there. */
const eventAt = async (
  { log, streams }: LedgerLog,
  tenantId: string,
  position: Position,
): Promise<LoggedEvent | undefined> => {
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
  revisions: readonly number[],
): Promise<LoggedEvent | undefined> => {
  for (const [at, kind] of KINDS.entries())
    for await (const batch of log.readStream(streams[kind](tenantId), revisions[at])) {
      const found = batch.find((event) => event.id === id);
      if (found !== undefined) return found;
    }
  return undefined;
};

/**
 * Finds an event of a tenant by its id. The read models know where each event is that was applied or skipped; only what
 * comes after those is searched.
 */
export const findEvent = async (
  { ledgerLog, readHistory }: Pick<EventSource, 'ledgerLog' | 'readHistory'>,
  reader: Pick<Reader, 'get'>,
  wanted: WantedEvent,
): Promise<LoggedEvent | undefined> => {
  const { tenantId, id } = wanted;
  // Read first: what is applied in the meantime is then searched as well, not missed.
  const revisions = await Promise.all(KINDS.map((kind) => lastRevision(reader, tenantId, kind)));
  const position = await findLogPosition(reader, tenantId, id);
  if (position !== undefined) return eventAt(ledgerLog, tenantId, position);
  return readHistory(tenantId, wanted, (sliced) => searchAfter(sliced, wanted, revisions));
};
