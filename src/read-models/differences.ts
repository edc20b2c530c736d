import { isDeepStrictEqual } from 'node:util';
import type { Compared, Generation, ScannedText, ScanStart, Suspect } from './read-models';

export interface Scope {
  readonly collection: string;
  /** Only documents of this tenant. */
  readonly tenantId?: string | undefined;
}

const PAGE = 500;

/** Walks the documents of one generation, page by page. */
interface Cursor {
  /** Reads the next page if this one is used up. */
  fill(): Promise<void>;
  /** Undefined at the end of a page. */
  current(): ScannedText | undefined;
  next(): void;
  /** There are more, but not in this page. */
  isUsedUp(): boolean;
  isAtEnd(): boolean;
}

const cursorOf = (generation: Generation, { collection, tenantId }: Scope): Cursor => {
  let after: ScanStart | undefined = tenantId === undefined ? undefined : { tenantId };
  let page: readonly ScannedText[] = [];
  let at = 0;
  let isLast = false;
  return {
    fill: async () => {
      if (at < page.length || isLast) return;
      const found = await generation.scanTexts(collection, PAGE, after);
      page = tenantId === undefined ? found : found.filter((row) => row.tenantId === tenantId);
      isLast = page.length < PAGE;
      after = page.at(-1);
      at = 0;
    },
    current: () => page[at],
    next: () => void (at += 1),
    isUsedUp: () => at >= page.length && !isLast,
    isAtEnd: () => at >= page.length && isLast,
  };
};

/** By UTF-8 bytes, as `scan` orders them. */
const order = (one: string, other: string): number =>
  one === other ? 0 : Buffer.compare(Buffer.from(one), Buffer.from(other));

/** Negative: `live` comes first. Undefined comes last. */
const orderOf = (live: ScannedText | undefined, rebuilt: ScannedText | undefined): number => {
  if (live === undefined || rebuilt === undefined) return live === undefined ? 1 : -1;
  return order(live.tenantId, rebuilt.tenantId) || order(live.key, rebuilt.key);
};

/** What is not JSON equals nothing else. */
const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return { text };
  }
};

const areEqual = (one: string | undefined, other: string | undefined): boolean =>
  one === other ||
  (one !== undefined && other !== undefined && isDeepStrictEqual(parsed(one), parsed(other)));

/** Merges two pages in the order of tenant and key, until one of them is used up. */
const mergePages = (live: Cursor, rebuilt: Cursor, collection: string): Compared => {
  const suspects: Suspect[] = [];
  let documents = 0;
  for (;;) {
    const [one, other] = [live.current(), rebuilt.current()];
    const comparison = orderOf(one, other);
    const found = comparison <= 0 ? one : other;
    if (live.isUsedUp() || rebuilt.isUsedUp() || found === undefined) return { documents, suspects };
    const { tenantId, key } = found;
    if (comparison !== 0 || !areEqual(one?.text, other?.text))
      suspects.push({ tenantId, collection, key, seenIn: comparison <= 0 ? 'live' : 'rebuilt' });
    if (comparison <= 0) {
      documents += 1;
      live.next();
    }
    if (comparison >= 0) rebuilt.next();
  }
};

/**
 * Finds, step by step, the documents that may differ between two generations, of whatever stores, both of which may
 * change in the meantime. A document that differs throughout is among the suspects. Not every suspect differs: it may
 * have changed since.
 */
export async function* differences(
  live: Generation,
  rebuilt: Generation,
  scope: Scope,
): AsyncGenerator<Compared> {
  const [one, other] = [cursorOf(live, scope), cursorOf(rebuilt, scope)];
  do {
    await one.fill();
    await other.fill();
    yield mergePages(one, other, scope.collection);
  } while (!one.isAtEnd() || !other.isAtEnd());
}
