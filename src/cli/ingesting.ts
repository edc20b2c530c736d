import { hasLog } from '../../projections/logs';
import type { Reader } from '../../projections/projector';
import { isoNow } from '../async/clock';
import type { Position } from '../event-log/event-log';
import { messageOf } from '../fault';
import {
  ingest,
  type Finished,
  type Ingested,
  type IngestOptions,
  type ShownActivity,
} from '../ingest/ingest';
import { patience } from '../ingest/patience';
import { isDamage } from '../read-models/damage';
import { readSetAside, type SetAside } from '../projecting/set-aside';
import { lastRevision } from '../projecting/stream-revisions';
import type { OperatorSession } from './operator-session';
import { notice } from './output';
import { withProgress, type ProgressLine } from './progress';

const progressIn = (line: ProgressLine) => {
  const began = Date.now();
  return ({ accepted, alreadyThere, refused }: Ingested): void => {
    const rate = Math.round((1_000 * (accepted + alreadyThere)) / Math.max(1, Date.now() - began));
    line.show(`${accepted} accepted, ${alreadyThere} already there, ${refused} refused, ${rate}/s`);
  };
};

/** Reads the revision first, so that `has` sees at least the events up to it. An event that was set aside has no row. */
const shownActivity = async (
  reader: Reader,
  setAside: SetAside,
  tenantId: string,
): Promise<ShownActivity> => ({
  revision: await lastRevision(reader, tenantId, 'activity'),
  has: async (eventId) => setAside.event('logs', eventId) || hasLog(reader, tenantId, eventId),
});

/** A damaged read model shows nothing any more. */
const unlessDamaged = (error: unknown): false => {
  if (!isDamage(error)) throw error;
  return false;
};

export interface IngestChoices {
  readonly isDryRun: boolean;
  /** How long to wait for a store that is away. */
  readonly waitSeconds: number;
  readonly onRefused: IngestOptions['onRefused'];
}

/** Ingests reported facts, as NDJSON, in the session of a command. */
export const ingestIn = async (
  { io, app, upToDate }: OperatorSession,
  input: AsyncIterable<Buffer>,
  { isDryRun, waitSeconds, onRefused }: IngestChoices,
): Promise<Finished> => {
  const { log, ledger, streams, projecting, watch } = app;
  const patiently = patience(waitSeconds * 1_000, (error) =>
    notice(io, `${messageOf(error)} Waiting up to ${waitSeconds} s for it.`),
  );
  watch.start();
  await patiently(upToDate);
  if (!isDryRun) await projecting.start();
  const setAside = await readSetAside(app);
  const dependencies = {
    log,
    ledger,
    streams,
    reached: (position: Position, withinMs: number) =>
      patiently(() => projecting.reached(position, withinMs).catch(unlessDamaged)),
    shown: (tenantId: string) => shownActivity(projecting.reader('logs'), setAside, tenantId),
    now: isoNow,
  };
  return withProgress(io, 'Ingesting:', (line) =>
    ingest(input, dependencies, { dryRun: isDryRun, onRefused, onProgress: progressIn(line), patiently }),
  );
};
