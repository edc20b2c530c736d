import { endSession, isStillSignedIn, openStream } from './api.js';
import { queryOf, type Filters } from './filters.js';
import type { LedgerEvent } from './wire.js';

export interface TailListener {
  /** The stream is open, or is being opened again. */
  onState(state: 'open' | 'reconnecting'): void;
  onEvent(event: LedgerEvent): void;
}

type Line = LedgerEvent | { readonly end: { readonly reason: string; readonly position?: string } };

const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 5_000;

async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    yield* lines.filter((line) => line !== '');
  }
}

const pause = (ms: number, abort: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    abort.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });

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
  let pauseMs = FIRST_PAUSE_MS;
  const readOnce = async (): Promise<'again' | 'over'> => {
    const query = queryOf(chosen, { follow: 'true', ...(position === undefined ? {} : { after: position }) });
    const response = await openStream(`/events?${query}`, abort);
    if (response?.status === 401 || response?.status === 403)
      return (await isStillSignedIn()) ? 'again' : 'over';
    if (response?.ok !== true || response.body === null) return 'again';
    listener.onState('open');
    pauseMs = FIRST_PAUSE_MS;
    for await (const text of linesOf(response.body)) {
      const line = JSON.parse(text) as Line;
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
    await pause(pauseMs, abort);
    pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 2);
  }
};
