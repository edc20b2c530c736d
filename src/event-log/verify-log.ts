import { decode, operatorEventOf, readSetAside, type SetAside } from './codec';
import { upTo, type LoggedEvent, type Position } from './event-log';
import { eventsDigest } from './events-digest';
import { gapBefore, type LedgerLog, type Streams } from './streams';

type FindingKind = 'gap' | 'order' | 'bad_event';

interface Finding {
  readonly kind: FindingKind;
  readonly stream: string;
  readonly revision: number;
  readonly event_id: string;
  readonly detail: string;
}

const MAX_LISTED = 100;

const faultOf = (event: LoggedEvent, streams: Streams): string | undefined => {
  const decoded = decode(event, streams);
  if (decoded.status === 'bad') return decoded.reason;
  if (decoded.status === 'good' || operatorEventOf(event) !== undefined) return undefined;
  return `This ${event.type} of the operator cannot be read.`;
};

/** Checks each event against those before it. */
const checking = (streams: Streams, { event: isSetAside, gapBefore: isAccepted }: SetAside) => {
  const revisions = new Map<string, number>();
  const findings: Finding[] = [];
  let last = '';
  let found = 0;
  let setAside = 0;

  const report = (kind: FindingKind, event: LoggedEvent, detail: string | undefined): void => {
    if (detail === undefined) return;
    const { tenantId = '' } = streams.parse(event.stream) ?? {};
    if (kind !== 'order' && (kind === 'gap' ? isAccepted : isSetAside)(tenantId, event.id)) {
      setAside += 1;
      return;
    }
    found += 1;
    const { stream, revision, id } = event;
    if (found <= MAX_LISTED) findings.push({ kind, stream, revision, event_id: id, detail });
  };

  return {
    result: () => ({ streams: revisions.size, findings, found, setAside }),
    check: (event: LoggedEvent): void => {
      const { stream, revision, position } = event;
      if (position <= last) report('order', event, `Its position ${position} does not come after ${last}.`);
      last = position;
      report('gap', event, gapBefore(event, revisions.get(stream) ?? -1));
      revisions.set(stream, revision);
      report('bad_event', event, faultOf(event, streams));
    },
  };
};

export const verifyLog = async (ledgerLog: LedgerLog, onProgress: (done: number, total: number) => void) => {
  const { log, streams } = ledgerLog;
  const head = (await log.head())?.position;
  const total = head === undefined ? 0 : await log.distance(undefined, head);
  const checked = checking(streams, await readSetAside(ledgerLog));
  const digest = eventsDigest();
  let foreign = 0;
  let lastPosition: Position | undefined;

  if (head !== undefined)
    for await (const batch of upTo(log.readAll(), head)) {
      const ours = batch.filter(({ stream }) => streams.holds(stream));
      for (const event of ours) {
        checked.check(event);
        digest.add(event);
      }
      foreign += batch.length - ours.length;
      lastPosition = ours.at(-1)?.position ?? lastPosition;
      onProgress(digest.count() + foreign, total);
    }
  const identity = await log.identity();
  const events = digest.count();
  return { identity, events, foreign, lastPosition, digest: digest.value(), ...checked.result() };
};

export type VerifiedLog = Awaited<ReturnType<typeof verifyLog>>;
