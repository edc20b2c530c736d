import { createHash } from 'node:crypto';
import { parsedJson } from '../json';
import type { Trailer } from './export';
import { fileFrom, linesOf, openExport } from './exported-file';

export interface CheckedOffline {
  readonly trailer: Trailer;
  /** The first contradiction between the file and its trailer. */
  readonly difference?: { readonly line?: number; readonly what: string };
  /** Whether the conditions select whole streams, so that a missing event leaves a gap in the revisions. */
  readonly isGapless: boolean;
}

/** What is checked of a line. */
interface Line {
  readonly stream: string;
  readonly revision: number;
  readonly position: string;
}

const lineOf = (bytes: Buffer): Line | undefined => {
  const value = parsedJson(bytes.toString()) as Partial<Line> | null | undefined;
  const { stream, revision, position } = value ?? {};
  const isLine = typeof stream === 'string' && typeof revision === 'number' && typeof position === 'string';
  return isLine ? { stream, revision, position } : undefined;
};

/** Any other condition may leave out events in between. */
const selectsStreams = ({ filter }: Trailer): boolean =>
  Object.keys(filter).every((name) => name === 'tenants');

const kindOf = (position: string): 'tenant' | 'activity' =>
  position.startsWith('tenant:') ? 'tenant' : 'activity';

/** Checks the lines one after the other. Each returns what is wrong. */
const followLines = (trailer: Trailer) => {
  const { view, filter, after, up_to } = trailer;
  const last = new Map<string, number>();
  const isGapless = selectsStreams(trailer);
  let before = view === 'operator' ? after : undefined;

  const revisionProblem = ({ stream, revision }: Line): string | undefined => {
    const previous = last.get(stream) ?? (after === undefined ? -1 : undefined);
    last.set(stream, revision);
    if (previous === undefined) return undefined;
    if (revision <= previous) return `revision ${revision} of ${stream} comes after revision ${previous}.`;
    if (isGapless && revision !== previous + 1)
      return `revision ${previous + 1} of ${stream} is missing before revision ${revision}.`;
    return undefined;
  };
  const positionProblem = ({ position, revision }: Line): string | undefined => {
    if (view === 'tenant') {
      if (position !== `${kindOf(position)}:${revision}`) return `${position} is not revision ${revision}.`;
      const end = typeof up_to === 'object' ? up_to[kindOf(position)] : undefined;
      return revision <= (end ?? -1) ? undefined : `${position} comes after the end that the trailer names.`;
    }
    const previous = before;
    before = position;
    if (previous !== undefined && position <= previous) return `${position} comes after ${previous}.`;
    return typeof up_to === 'string' && position <= up_to
      ? undefined
      : `${position} comes after the end that the trailer names.`;
  };
  return {
    take: (line: Line): string | undefined => revisionProblem(line) ?? positionProblem(line),
    /** The last revision of a kind of stream of the tenant. */
    lastOf: (kind: string): number | undefined =>
      [...last].find(([stream]) => stream.endsWith(`${kind}-${filter.tenants?.[0]}`))?.[1],
    isGapless,
  };
};

/** Whether whole streams end where the trailer says. */
const endProblem = (
  { view, after, up_to }: Trailer,
  { isGapless, lastOf }: ReturnType<typeof followLines>,
): string | undefined => {
  if (view !== 'tenant' || !isGapless || typeof up_to !== 'object') return undefined;
  for (const kind of ['tenant', 'activity'] as const) {
    const [named, last] = [up_to[kind], lastOf(kind)];
    const isUnknown = last === undefined && after !== undefined;
    if (named !== last && !isUnknown)
      return `the events of ${kind} end with revision ${last ?? 'none'}, not with ${named ?? 'none'} as the trailer says.`;
  }
  return undefined;
};

/**
 * What can be known about an exported file without its log: whether lines and trailer agree. Lines of CSV are hashed, and
 * nothing else.
 */
export const checkOffline = async (file: string): Promise<CheckedOffline> => {
  const { trailer, startsAt } = await openExport(file);
  const hash = createHash('sha256');
  const following = followLines(trailer);
  const positions: string[] = [];
  let count = 0;
  const { isGapless } = following;
  const different = (what: string, line?: number): CheckedOffline => ({
    trailer,
    isGapless,
    difference: line === undefined ? { what } : { line, what },
  });
  for await (const bytes of linesOf(fileFrom(file, 0, startsAt))) {
    hash.update(bytes).update('\n');
    count += 1;
    if (trailer.format === 'csv') continue;
    const line = lineOf(bytes);
    const problem = line === undefined ? 'it is not an event.' : following.take(line);
    if (problem !== undefined) return different(problem, count);
    positions[count === 1 ? 0 : 1] = line?.position ?? '';
  }
  if (hash.digest('hex') !== trailer.sha256) return different('the SHA-256 of the lines is another one.');
  if (trailer.format === 'csv') return { trailer, isGapless: false };
  if (count !== trailer.events)
    return different(`it has ${count} events, and the trailer says ${trailer.events}.`);
  const isNamed = positions[0] === trailer.first_position && positions.at(-1) === trailer.last_position;
  if (!isNamed) return different('the trailer names another first or last position.');
  const isEnded =
    trailer.complete === count < (trailer.limit ?? Infinity) && count <= (trailer.limit ?? Infinity);
  if (!isEnded) return different('the number of events and the limit contradict each other.');
  const problem = endProblem(trailer, following);
  return problem === undefined ? { trailer, isGapless } : different(problem);
};
