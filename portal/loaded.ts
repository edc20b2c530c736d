import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { call, isPending, type Result } from './api.js';

/** What failed in the service, and may be mended by then, is asked for again. */
const AGAIN_MS = 5_000;

const looks = signal(0);
/** Asks again for everything that the page shows. */
export const lookAgain = (): void => void (looks.value += 1);

/**
 * What is asked for. It is asked for again once a change that was pending is shown, and with `reload`; without a key it is
 * not asked for.
 */
export const useAsked = <T>(key: string | undefined, ask: (abort: AbortSignal) => Promise<Result<T>>) => {
  const [loaded, setLoaded] = useState<Result<T>>();
  const [round, setRound] = useState(0);
  const [pending, look] = [isPending.value, looks.value];
  const reload = (): void => setRound((before) => before + 1);
  useEffect(() => {
    if (key === undefined) return undefined;
    const abort = new AbortController();
    void ask(abort.signal).then((found) => {
      if (!abort.signal.aborted) setLoaded(found);
    });
    return () => abort.abort();
  }, [key, round, pending, look]);
  useEffect(() => {
    if (loaded === undefined || loaded.ok || loaded.problem.status < 500) return undefined;
    const timer = setTimeout(reload, AGAIN_MS);
    return () => clearTimeout(timer);
  }, [loaded]);
  const { value, etag } = loaded?.ok === true ? loaded : { value: undefined, etag: '' };
  return { loaded, value, etag, reload };
};

/** Looks again and again while somebody may see it. Undefined: not now. */
export const useEvery = (ms: number | undefined, look: () => void): void =>
  useEffect(() => {
    if (ms === undefined) return undefined;
    const timer = setInterval(() => !document.hidden && look(), ms);
    return () => clearInterval(timer);
  }, [ms]);

/** What a path of the API shows. */
export const useLoaded = <T>(path: string | undefined) =>
  useAsked<T>(path, (abort) => call<T>(path ?? '', { signal: abort }));
