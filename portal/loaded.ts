import { useEffect, useState } from 'preact/hooks';
import { call, isPending, type Result } from './api.js';

/**
 * What is asked for. Undefined: it is not there yet. It is asked for again once a change that was pending is shown, and with
 * `reload`; without a key it is not asked for.
 */
export const useAsked = <T>(key: string | undefined, ask: (abort: AbortSignal) => Promise<T>) => {
  const [answer, setAnswer] = useState<T>();
  const [round, setRound] = useState(0);
  const pending = isPending.value;
  useEffect(() => {
    if (key === undefined) return undefined;
    const abort = new AbortController();
    void ask(abort.signal).then((found) => {
      if (!abort.signal.aborted) setAnswer(found);
    });
    return () => abort.abort();
  }, [key, round, pending]);
  return [answer, () => setRound((before) => before + 1)] as const;
};

/** What failed in the service, and may be mended by then, is asked for again. */
const AGAIN_MS = 5_000;

/** What a path of the API shows. */
export const useLoaded = <T>(path: string | undefined): readonly [Result<T> | undefined, () => void] => {
  const [result, reload] = useAsked(path, (signal) => call<T>(path ?? '', { signal }));
  useEffect(() => {
    if (result === undefined || result.ok || result.problem.status < 500) return undefined;
    const timer = setTimeout(reload, AGAIN_MS);
    return () => clearTimeout(timer);
  }, [result]);
  return [result, reload];
};
