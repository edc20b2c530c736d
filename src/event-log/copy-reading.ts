import { fault, type Fault } from '../fault';
import type { NewEvent, Position } from './event-log';
import { gapBefore } from './gap';
import { ownOf, runningDigest, type Own, type Side } from './own-events';

/** How far one side was read and found equal. */
export interface Reading {
  /** What lies behind what was taken, up to a position. Of a source, it throws where events are missing. */
  events(upTo?: Position): AsyncGenerator<Own, undefined>;
  take(own: Own): void;
  count(): number;
  foreign(): number;
  digest(): string;
}

/** What cannot be copied, by its name. */
const notCopied = ({ event: { id, type, revision, stream } }: Own, reason: string): Fault =>
  fault(
    'copy_refused',
    `The event ${id} (${type}, revision ${revision} of ${stream}) cannot be copied: ${reason}`,
  );

export const reading = ({ log, streams }: Side, role: 'source' | 'target'): Reading => {
  const digest = runningDigest();
  /** The last revision of each stream in what was taken. */
  const revisions = new Map<string, number>();
  let after: Position | undefined;
  let count = 0;
  let foreign = 0;
  let lastForeign = '';

  const checked = (own: Own, reached: Map<string, number>): Own => {
    const gap = gapBefore(own.event, reached.get(own.role) ?? -1);
    if (role === 'source' && gap !== undefined) throw notCopied(own, gap);
    reached.set(own.role, own.event.revision);
    return own;
  };

  async function* events(upTo?: Position): AsyncGenerator<Own, undefined> {
    const reached = new Map(revisions);
    for await (const batch of log.readAll({ after }))
      for (const event of batch) {
        if (upTo !== undefined && event.position > upTo) return;
        const name = streams.roleOf(event.stream);
        if (name !== undefined) yield checked(ownOf(event, name), reached);
        else if (event.position > lastForeign) {
          // The same stretch may be read twice.
          lastForeign = event.position;
          foreign += 1;
        }
      }
  }

  return {
    events,
    take: (own) => {
      digest.add(own);
      revisions.set(own.role, own.event.revision);
      after = own.event.position;
      count += 1;
    },
    count: () => count,
    foreign: () => foreign,
    digest: digest.soFar,
  };
};

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !Buffer.isBuffer(value);

/** JSON has numbers that JavaScript reads as infinite and would write as null. */
const holdsInfinity = (value: unknown): boolean => {
  if (typeof value === 'number') return !Number.isFinite(value);
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsInfinity);
};

/** What would not come out of the target as it lies in the source is not copied at all. */
const reasonAgainst = ({ event: { data, metadata = {} }, text }: Own): string | undefined => {
  // A bare text is what a log may give for JSON that is none.
  if (Buffer.isBuffer(data) || typeof data === 'string' || data === undefined) return 'its data is not JSON';
  if (!isRecord(metadata)) return 'its metadata is not a JSON object';
  if (Object.hasOwn(metadata, 'recordedAt'))
    return 'its metadata has a member recordedAt, which the log keeps for itself';
  if ((text.data + text.metadata).includes('null') && (holdsInfinity(data) || holdsInfinity(metadata)))
    return 'it holds a number that is too large';
  return undefined;
};

export const newEventOf = (own: Own): NewEvent => {
  const { id, type, data, metadata = {}, recordedAt } = own.event;
  const reason = reasonAgainst(own);
  if (reason !== undefined) throw notCopied(own, `${reason}.`);
  return {
    id,
    type,
    data: data as NewEvent['data'],
    metadata: metadata as NewEvent['metadata'],
    recordedAt,
  };
};
