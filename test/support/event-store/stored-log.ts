import { randomUUID } from 'node:crypto';

/**
 * What the stand-in server stores. It imitates EventStoreDB 23.10 and shares nothing with the adapter. How each
 * behaviour is known: [seen] on a running 23.10.8, [source] read in its public source (branch oss-v23.10), or [unseen]
 * as documented, neither checked in the source nor tried on a node.
 */
export interface StoredRecord extends Proposed {
  readonly stream: string;
  readonly revision: number;
  readonly created: number;
  readonly position: bigint;
}

export interface Proposed {
  readonly id: string;
  readonly type: string;
  readonly contentType: string;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
}

export type ExpectedRevision = 'any' | 'no_stream' | 'stream_exists' | bigint;

export type Verdict =
  | { readonly kind: 'written' | 'again'; readonly revision: number; readonly position: bigint }
  | { readonly kind: 'wrong_revision'; readonly actual: number }
  | { readonly kind: 'deleted' };

export type Found = 'deleted' | 'not_found' | readonly StoredRecord[];

/** [seen] Positions are byte offsets with gaps: a record takes more than its data. */
const OVERHEAD = 113n;

export interface StoredLog {
  readonly records: readonly StoredRecord[];
  ofStream(stream: string): readonly StoredRecord[];
  append(stream: string, expected: ExpectedRevision, events: readonly Proposed[]): Verdict;
  /** The index of the record at this position; the number of records if it is beyond the end; else undefined. */
  indexAt(position: bigint): number | undefined;
  /** Replaces the log with an older copy: only the first records are left, this many. */
  restore(count: number): void;
  /** [unseen] Hides a stream: it reads as not found, and an append continues after its former revisions. */
  softDelete(stream: string): void;
  /** [unseen] Ends a stream permanently. */
  tombstone(stream: string): void;
  /** [unseen] `$tb`: revisions before this one can no longer be read. */
  truncate(stream: string, before: number): void;
  /** [unseen] Removes a record for good, as scavenging does with deleted ones; $all continues after it. */
  scavenge(id: string): void;
  find(stream: string): Found;
  onAppended(listener: () => void): () => void;
}

/** A log may start anywhere: an old server has positions that exceed a JavaScript number. */
export const storedLog = (begin = 0n): StoredLog => {
  const records: StoredRecord[] = [];
  const streams = new Map<string, StoredRecord[]>();
  const listeners = new Set<() => void>();
  /** The first revision that can be read, if it is not the very first. */
  const truncated = new Map<string, number>();
  const tombstones = new Set<string>();
  let end = begin;

  const add = (stream: string, event: Proposed): StoredRecord => {
    const own = streams.get(stream) ?? [];
    streams.set(stream, own);
    const revision = (own.at(-1)?.revision ?? -1) + 1;
    const record = { ...event, stream, revision, created: Date.now(), position: end };
    end += OVERHEAD + BigInt(event.data.length + event.metadata.length + event.type.length + stream.length);
    own.push(record);
    records.push(record);
    return record;
  };

  /** [seen] The server writes its own events as well, so $all holds some that are not ours. */
  const addStatistics = (): void => {
    const none = new Uint8Array();
    const data = Buffer.from('{"proc":{"cpu":1}}');
    const type = '$statsCollected';
    add('$stats-127.0.0.1:2113', {
      id: randomUUID(),
      type,
      contentType: 'application/json',
      data,
      metadata: none,
    });
  };
  addStatistics();

  /**
   * [source] IndexWriter.CheckCommit: with an exact revision, the ids that follow it decide whether it is a repeated
   * append.
   */
  const again = (own: readonly StoredRecord[], after: number, events: readonly Proposed[]): Verdict => {
    const stored = own.filter(({ revision }) => revision > after).slice(0, events.length);
    const last = stored.at(-1);
    const same = stored.length === events.length && stored.every((record, i) => record.id === events[i]?.id);
    if (same && last !== undefined)
      return { kind: 'again', revision: last.revision, position: last.position };
    return { kind: 'wrong_revision', actual: own.at(-1)?.revision ?? -1 };
  };

  const isSoftDeleted = (stream: string): boolean => truncated.get(stream) === Infinity;

  /** [unseen] Metadata is a stream of its own; `$tb` of a deleted stream is the largest number. */
  const setTruncation = (stream: string, before: number): void => {
    truncated.set(stream, before);
    const tb = before === Infinity ? '9223372036854775807' : String(before);
    add(`$$${stream}`, {
      id: randomUUID(),
      type: '$metadata',
      contentType: 'application/json',
      data: Buffer.from(`{"$tb":${tb}}`),
      metadata: new Uint8Array(),
    });
  };

  return {
    records,
    ofStream: (stream) => streams.get(stream) ?? [],
    append: (stream, expected, events) => {
      const own = streams.get(stream) ?? [];
      const actual = own.at(-1)?.revision ?? -1;
      if (tombstones.has(stream)) return { kind: 'deleted' };
      // [unseen] Both "no stream" and its last revision may append to a deleted stream, which continues after its
      // former revisions.
      const revived = isSoftDeleted(stream) && (expected === 'no_stream' || Number(expected) === actual);
      const wanted = typeof expected === 'bigint' ? Number(expected) : expected === 'no_stream' ? -1 : actual;
      if (expected === 'stream_exists' && actual < 0) return { kind: 'wrong_revision', actual };
      if (wanted < actual && !revived) return again(own, wanted, events);
      if (wanted > actual) return { kind: 'wrong_revision', actual };
      if (records.length % 16 === 0) addStatistics();
      const last = events.map((event) => add(stream, event)).at(-1) as StoredRecord;
      if (revived) setTruncation(stream, actual + 1);
      for (const listener of listeners) listener();
      return { kind: 'written', revision: last.revision, position: last.position };
    },
    indexAt: (position) => {
      if (position >= end) return records.length;
      let low = 0;
      let high = records.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if ((records[middle] as StoredRecord).position < position) low = middle + 1;
        else high = middle;
      }
      return records[low]?.position === position ? low : undefined;
    },
    restore: (count) => {
      end = records[count]?.position ?? end;
      for (const { stream } of records.splice(count)) streams.get(stream)?.pop();
    },
    softDelete: (stream) => setTruncation(stream, Infinity),
    tombstone: (stream) => void tombstones.add(stream),
    truncate: setTruncation,
    scavenge: (id) => {
      const at = records.findIndex((record) => record.id === id);
      const [gone] = records.splice(at, 1);
      const own = streams.get(gone?.stream ?? '') ?? [];
      own.splice(
        own.findIndex((record) => record.id === id),
        1,
      );
    },
    find: (stream) => {
      if (tombstones.has(stream)) return 'deleted';
      const own = streams.get(stream) ?? [];
      if (own.length === 0 || isSoftDeleted(stream)) return 'not_found';
      const first = truncated.get(stream) ?? 0;
      return own.filter(({ revision }) => revision >= first);
    },
    onAppended: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
};
