import { findLogPosition } from '../../projections/logs';
import type { Reader } from '../../projections/projector';
import type { StreamKind } from '../domain/events';
import type { LoggedEvent, Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import { firstOf } from '../event-log/reading';
import { lastRevision } from '../projecting/stream-revisions';

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

/** Up to where the read models know the streams of a tenant, by kind. */
type Known = Readonly<Record<StreamKind, number>>;

const knownIn = async (reader: Pick<Reader, 'get'>, tenantId: string): Promise<Known> => {
  const [tenant, activity] = await Promise.all([
    lastRevision(reader, tenantId, 'tenant'),
    lastRevision(reader, tenantId, 'activity'),
  ]);
  return { tenant, activity };
};

/** The event that is looked for, and from where on. */
export interface EventSearch {
  readonly id: string;
  readonly after: Known;
}

/** Reads the streams of a tenant, which may be long: only in the thread that reads. */
export const searchEvent = async (
  { log, streams }: LedgerLog,
  tenantId: string,
  { id, after }: EventSearch,
): Promise<Position | undefined> => {
  for (const kind of KINDS)
    for await (const batch of log.readStream(streams[kind](tenantId), after[kind])) {
      const found = batch.find((event) => event.id === id);
      if (found !== undefined) return found.position;
    }
  return undefined;
};

/** Whether the log has more events of a tenant than are known. */
const isBehind = async ({ log, streams }: LedgerLog, tenantId: string, known: Known): Promise<boolean> => {
  const head = await log.head();
  if (head === undefined) return false;
  const ends = await Promise.all(KINDS.map((kind) => log.revisionAt(streams[kind](tenantId), head.position)));
  return KINDS.some((kind, at) => (ends[at] ?? -1) > known[kind]);
};

export interface FindEventDependencies {
  readonly ledgerLog: LedgerLog;
  readonly reader: Pick<Reader, 'get'>;
  readonly search: (wanted: EventSearch) => Promise<Position | undefined>;
}

/**
 * Finds an event of a tenant by its id. The read models know where each event is that was applied or
 * skipped; only what comes after those is searched.
 */
export const findEvent = async (
  { ledgerLog, reader, search }: FindEventDependencies,
  tenantId: string,
  id: string,
): Promise<LoggedEvent | undefined> => {
  // Read first: what is applied in the meantime is then searched as well, not missed.
  const after = await knownIn(reader, tenantId);
  const known = await findLogPosition(reader, tenantId, id);
  if (known === undefined && !(await isBehind(ledgerLog, tenantId, after))) return undefined;
  const position = known ?? (await search({ id, after }));
  return position === undefined ? undefined : eventAt(ledgerLog, tenantId, position);
};
