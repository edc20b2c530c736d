import { keyFilter } from '../key-filter';
import { decode, operatorEventOf } from './codec';
import type { EventLog, LoggedEvent, Position } from './event-log';
import { gapBefore } from './gap';
import type { LedgerLog } from './ledger-log';
import { ownOf, runningDigest } from './own-events';
import { upTo } from './reading';
import type { Streams } from './streams';

type FindingKind = 'gap' | 'order' | 'bad_event' | 'duplicate_id';

interface Finding {
  readonly kind: FindingKind;
  readonly stream: string;
  readonly revision: number;
  readonly event_id: string;
  readonly detail: string;
}

/** The result of an earlier verification of this log, or of the log that it is a copy of. */
export interface EarlierHistory {
  readonly events: number;
  readonly digest: string;
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
  /** Whether this log still starts with the earlier history. `cut`: there are fewer events now. */
  readonly earlier?: 'unchanged' | 'changed' | 'cut';
}

interface Verification {
  readonly earlier?: EarlierHistory | undefined;
  onProgress(done: number, total: number): void;
}

const MAX_LISTED = 100;

const findingsOf = () => {
  const listed: Finding[] = [];
  let found = 0;
  return {
    listed,
    found: () => found,
    add: (kind: FindingKind, { stream, revision, id }: LoggedEvent, detail: string): void => {
      found += 1;
      if (listed.length < MAX_LISTED) listed.push({ kind, stream, revision, event_id: id, detail });
    },
  };
};
type Findings = ReturnType<typeof findingsOf>;

const faultOf = (event: LoggedEvent, streams: Streams): string | undefined => {
  const decoded = decode(event, streams);
  if (decoded.status === 'bad') return decoded.reason;
  if (decoded.status === 'good' || operatorEventOf(event) !== undefined) return undefined;
  return `This ${event.type} of the operator cannot be read.`;
};

/** Ids must be unique across the streams of a tenant, or within a stream that belongs to none. */
const scopeOf = (stream: string, streams: Streams): string => streams.parse(stream)?.tenantId ?? stream;

const eventsIn = (scope: string, { log, streams }: LedgerLog): ReturnType<EventLog['readStream']> =>
  streams.holds(scope) ? log.readStream(scope) : log.readTenant(scope);

/** The filter may report false positives, so compare the suspects themselves. */
const findDuplicates = async (
  scope: string,
  suspects: ReadonlySet<string>,
  ledgerLog: LedgerLog,
  last: Position,
  findings: Findings,
): Promise<void> => {
  const first = new Map<string, LoggedEvent>();
  const compare = (event: LoggedEvent): void => {
    const other = first.get(event.id);
    if (other === undefined) return void first.set(event.id, event);
    const detail = `The same event id is also that of revision ${other.revision} of ${other.stream}.`;
    findings.add('duplicate_id', event, detail);
  };
  for await (const batch of upTo(eventsIn(scope, ledgerLog), last))
    batch.filter(({ id }) => suspects.has(id)).forEach(compare);
};

/** Eight bytes per expected id give about one false positive in a million. 256 MB at most. */
const WORDS_PER_ID = 2;
const MIN_WORDS = 2 ** 16;
const MAX_WORDS = 2 ** 26;

const wordsFor = (ids: number): number => {
  const wanted = Math.min(MAX_WORDS, Math.max(MIN_WORDS, ids * WORDS_PER_ID));
  return 2 ** Math.ceil(Math.log2(wanted));
};

/** Checks each event against those before it. */
const checking = ({ streams }: LedgerLog, expected: number, findings: Findings) => {
  const revisions = new Map<string, number>();
  const seen = keyFilter(wordsFor(expected));
  const suspects = new Map<string, Set<string>>();
  let last: Position = '';

  const suspect = (scope: string, id: string): void => {
    const ids = suspects.get(scope) ?? new Set();
    suspects.set(scope, ids.add(id));
  };

  return {
    streams: () => revisions.size,
    suspects,
    check: (event: LoggedEvent): void => {
      const { stream, revision, position, id } = event;
      if (position <= last)
        findings.add('order', event, `Its position ${position} does not come after ${last}.`);
      last = position;
      const gap = gapBefore(event, revisions.get(stream) ?? -1);
      if (gap !== undefined) findings.add('gap', event, gap);
      revisions.set(stream, revision);
      const fault = faultOf(event, streams);
      if (fault !== undefined) findings.add('bad_event', event, fault);
      const scope = scopeOf(stream, streams);
      if (!seen.add({ tenantId: scope, collection: '', key: id })) suspect(scope, id);
    },
  };
};

/** Computes the digest, and on the way that of the earlier verification. */
const comparing = (earlier: EarlierHistory | undefined) => {
  const digest = runningDigest();
  let events = 0;
  let earlierDigest = earlier?.events === 0 ? digest.soFar() : undefined;
  return {
    digest: digest.soFar,
    events: () => events,
    add: (event: LoggedEvent, role: string): void => {
      digest.add(ownOf(event, role));
      events += 1;
      if (events === earlier?.events) earlierDigest = digest.soFar();
    },
    outcome: (): Pick<VerifiedLog, 'earlier'> => {
      if (earlier === undefined) return {};
      if (earlierDigest === undefined) return { earlier: 'cut' };
      return { earlier: earlierDigest === earlier.digest ? 'unchanged' : 'changed' };
    },
  };
};

/** Reads a log up to its current head and lists what is wrong, so it ends even while the log is being written to. */
export const verifyLog = async (
  ledgerLog: LedgerLog,
  { earlier, onProgress }: Verification,
): Promise<VerifiedLog> => {
  const { log, streams } = ledgerLog;
  const head = (await log.head())?.position;
  const total = head === undefined ? 0 : await log.distance(undefined, head);
  const findings = findingsOf();
  const { check, suspects, ...checked } = checking(ledgerLog, total, findings);
  const history = comparing(earlier);
  let foreign = 0;
  let lastPosition: Position | undefined;

  const take = (event: LoggedEvent): void => {
    const role = streams.roleOf(event.stream);
    if (role === undefined) {
      foreign += 1;
      return;
    }
    check(event);
    history.add(event, role);
    lastPosition = event.position;
  };

  if (head !== undefined)
    for await (const batch of upTo(log.readAll(), head)) {
      for (const event of batch) take(event);
      onProgress(history.events() + foreign, total);
    }
  for (const [scope, ids] of suspects)
    await findDuplicates(scope, ids, ledgerLog, lastPosition ?? '', findings);

  return {
    identity: await log.identity(),
    events: history.events(),
    streams: checked.streams(),
    foreign,
    lastPosition,
    digest: history.digest(),
    found: findings.found(),
    findings: findings.listed,
    ...history.outcome(),
  };
};
