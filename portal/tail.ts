import { endSession, isStillSignedIn, nextPause, openStream, pause } from './api.js';
import { queryOf, type Filters } from './filters.js';
import type { LedgerEvent } from './wire.js';

export interface TailListener {
  /** The stream is open, or is being opened again. */
  onState(state: 'open' | 'reconnecting'): void;
  onEvent(event: LedgerEvent): void;
}

type Line = LedgerEvent | { readonly end: { readonly reason: string } } | { readonly trailer: unknown };

/** The lines of a stream of events as they come. */
export async function* linesIn(body: ReadableStream<Uint8Array>): AsyncGenerator<Line> {
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') yield JSON.parse(line) as Line;
  }
}

/** The key may be refused while a stream is open: the session has then ended. */
const isOver = (reason: string): boolean => {
  if (reason !== 'key_refused') return false;
  endSession();
  return true;
};

/**
 * Follows the events after a position until it is aborted. It continues after the last event that it has passed on, so
 * that nothing is missed or repeated, whatever happens to the connection or the server.
 */
export const followEvents = async (
  chosen: Filters,
  after: string | undefined,
  listener: TailListener,
  abort: AbortSignal,
): Promise<void> => {
  let position = after;
  let ms = nextPause();
  const readOnce = async (): Promise<'again' | 'over'> => {
    const query = queryOf(chosen, { follow: 'true', ...(position === undefined ? {} : { after: position }) });
    const response = await openStream(`/events?${query}`, abort);
    if (response?.status === 401 || response?.status === 403)
      return (await isStillSignedIn()) ? 'again' : 'over';
    if (response?.ok !== true || response.body === null) return 'again';
    listener.onState('open');
    ms = nextPause();
    for await (const line of linesIn(response.body)) {
      if ('end' in line) return isOver(line.end.reason) ? 'over' : 'again';
      if (!('position' in line)) continue;
      position = line.position;
      listener.onEvent(line);
    }
    return 'again';
  };
  while (!abort.aborted) {
    const outcome = await readOnce().catch(() => 'again' as const);
    if (outcome === 'over' || abort.aborted) return;
    listener.onState('reconnecting');
    await pause(ms, abort);
    ms = nextPause(ms);
  }
};
