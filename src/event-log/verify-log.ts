import { isDeepStrictEqual } from 'node:util';
import type { OperatorEvent } from '../domain/events';
import { decode, operatorEventOf } from './codec';
import type { LoggedEvent, Position } from './event-log';
import { gapBefore } from './gap';
import type { LedgerLog } from './ledger-log';
import { eventsDigest } from './events-digest';
import { operatorEvents } from './operator-events';
import { upTo } from './reading';
import { repeatedTexts, type RepeatedTexts } from './repeated-texts';
import type { Streams } from './streams';

type FindingKind = 'gap' | 'order' | 'bad_event' | 'duplicate_id';

/** What is known and harmless: a second copy of an event with equal content, and what the operator has set aside. */
type NoteKind = 'copy' | 'set_aside';

interface Finding<Kind = FindingKind> {
  readonly kind: Kind;
  readonly stream: string;
  readonly revision: number;
  readonly event_id: string;
  readonly detail: string;
}

export interface VerifiedLog {
  readonly identity: string;
  /** In our own streams. */
  readonly events: number;
  readonly streams: number;
  /** Events in other streams. */
  readonly foreign: number;
  readonly lastPosition: Position | undefined;
  readonly digest: string;
  readonly found: number;
  /** At most MAX_LISTED. */
  readonly findings: readonly Finding[];
  /** The number of notes of each kind. */
  readonly noted: Readonly<Record<NoteKind, number>>;
  /** At most MAX_LISTED. */
  readonly notes: readonly Finding<NoteKind>[];
}

const MAX_LISTED = 100;

const listOf = <Kind extends string>() => {
  const listed: Finding<Kind>[] = [];
  const counts = new Map<Kind, number>();
  return {
    listed,
    count: (kind: Kind): number => counts.get(kind) ?? 0,
    total: (): number => [...counts.values()].reduce((sum, count) => sum + count, 0),
    add: (kind: Kind, { stream, revision, id }: LoggedEvent, detail: string): void => {
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
      if (listed.length < MAX_LISTED) listed.push({ kind, stream, revision, event_id: id, detail });
    },
  };
};

const resultsOf = () => ({ findings: listOf<FindingKind>(), notes: listOf<NoteKind>() });
type Results = ReturnType<typeof resultsOf>;

const faultOf = (event: LoggedEvent, streams: Streams): string | undefined => {
  const decoded = decode(event, streams);
  if (decoded.status === 'bad') return decoded.reason;
  if (decoded.status === 'good' || operatorEventOf(event) !== undefined) return undefined;
  return `This ${event.type} of the operator cannot be read.`;
};

/** Ids must be unique across the streams of a tenant, or within a stream that belongs to none. */
const scopeOf = (stream: string, streams: Streams): string => streams.parse(stream)?.tenantId ?? stream;

const idOf = ({ stream, id }: LoggedEvent, streams: Streams): string =>
  JSON.stringify([scopeOf(stream, streams), id]);

/** Whether the operator has set an event aside, or accepted the gap before it, in any projection. */
type SetAside = (type: OperatorEvent['type'], scope: string, eventId: string) => boolean;

const readSetAside = async (ledgerLog: LedgerLog): Promise<SetAside> => {
  const entries = new Set<string>();
  for await (const { type, data } of operatorEvents(ledgerLog))
    entries.add(`${type} ${data.eventTenantId} ${data.eventId}`);
  return (type, scope, eventId) => entries.has(`${type} ${scope} ${eventId}`);
};

/** Without what says when and by which run of `ingest` it was appended. */
const contentOf = ({ type, data, metadata }: LoggedEvent): unknown => {
  if (Buffer.isBuffer(metadata)) return { type, data, metadata };
  const { at: _at, ingestId: _ingestId, ...rest } = (metadata ?? {}) as Record<string, unknown>;
  return { type, data, metadata: { version: 1, ...rest } };
};

/** Reads the log again if ids are repeated, and compares the events that have them. */
const compareRepeated = async (
  { log, streams }: LedgerLog,
  ids: RepeatedTexts,
  last: Position,
  { findings, notes }: Results,
): Promise<void> => {
  const { count, mayHave } = ids.find();
  if (count === 0) return;
  const first = new Map<string, LoggedEvent>();
  const compare = (event: LoggedEvent): void => {
    const id = idOf(event, streams);
    if (!mayHave(id)) return;
    const other = first.get(id);
    if (other === undefined) return void first.set(id, event);
    const place = `revision ${other.revision} of ${other.stream}`;
    if (isDeepStrictEqual(contentOf(event), contentOf(other)))
      notes.add('copy', event, `It is a second copy of ${place}. It counts once.`);
    else
      findings.add(
        'duplicate_id',
        event,
        `The same event id is also that of ${place}, which has another content.`,
      );
  };
  for await (const batch of upTo(log.readAll(), last))
    for (const event of batch) if (streams.holds(event.stream)) compare(event);
};

/** Checks each event against those before it. */
const checking = (
  { streams }: LedgerLog,
  isSetAside: SetAside,
  ids: RepeatedTexts,
  { findings, notes }: Results,
) => {
  const revisions = new Map<string, number>();
  let last: Position = '';

  /** A fault of an event, unless the operator has set it aside. */
  const report = (
    kind: 'gap' | 'bad_event',
    event: LoggedEvent,
    scope: string,
    detail: string | undefined,
  ): void => {
    if (detail === undefined) return;
    if (isSetAside(kind === 'gap' ? 'GapAccepted' : 'EventSetAside', scope, event.id))
      notes.add('set_aside', event, detail);
    else findings.add(kind, event, detail);
  };

  return {
    streams: () => revisions.size,
    check: (event: LoggedEvent): void => {
      const { stream, revision, position } = event;
      if (position <= last)
        findings.add('order', event, `Its position ${position} does not come after ${last}.`);
      last = position;
      const scope = scopeOf(stream, streams);
      report('gap', event, scope, gapBefore(event, revisions.get(stream) ?? -1));
      revisions.set(stream, revision);
      report('bad_event', event, scope, faultOf(event, streams));
      ids.add(idOf(event, streams));
    },
  };
};

/** Reads a log up to its current head and lists what is wrong, so it ends even while the log is being written to. */
export const verifyLog = async (
  ledgerLog: LedgerLog,
  onProgress: (done: number, total: number) => void,
): Promise<VerifiedLog> => {
  const { log, streams } = ledgerLog;
  const head = (await log.head())?.position;
  const total = head === undefined ? 0 : await log.distance(undefined, head);
  const results = resultsOf();
  const setAside = await readSetAside(ledgerLog);
  const ids = repeatedTexts();
  const checked = checking(ledgerLog, setAside, ids, results);
  const digest = eventsDigest();
  let [events, foreign] = [0, 0];
  let lastPosition: Position | undefined;

  const take = (event: LoggedEvent): void => {
    if (!streams.holds(event.stream)) {
      foreign += 1;
      return;
    }
    checked.check(event);
    digest.add(event);
    events += 1;
    lastPosition = event.position;
  };

  if (head !== undefined)
    for await (const batch of upTo(log.readAll(), head)) {
      for (const event of batch) take(event);
      onProgress(events + foreign, total);
    }
  await compareRepeated(ledgerLog, ids, lastPosition ?? '', results);

  const { findings, notes } = results;
  return {
    identity: await log.identity(),
    events,
    streams: checked.streams(),
    foreign,
    lastPosition,
    digest: digest.value(),
    found: findings.total(),
    findings: findings.listed,
    noted: { copy: notes.count('copy'), set_aside: notes.count('set_aside') },
    notes: notes.listed,
  };
};
