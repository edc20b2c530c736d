import { useEffect, useState } from 'preact/hooks';
import { call, isPending, type Result } from './api.js';

/** What failed here, and may be mended by then, is asked for again. */
const AGAIN_MS = 5_000;

/** What a path of the API shows. Undefined: it is not there yet. `reload` asks again, as does a change that was pending. */
export const useLoaded = <T>(path: string): readonly [Result<T> | undefined, () => void] => {
  const [result, setResult] = useState<Result<T>>();
  const [round, setRound] = useState(0);
  const pending = isPending.value;
  useEffect(() => {
    const abort = new AbortController();
    void call<T>(path, { signal: abort.signal }).then((found) => {
      if (!abort.signal.aborted) setResult(found);
    });
    return () => abort.abort();
  }, [path, round, pending]);
  useEffect(() => {
    if (result === undefined || result.ok || result.problem.status < 500) return undefined;
    const timer = setTimeout(() => setRound(round + 1), AGAIN_MS);
    return () => clearTimeout(timer);
  }, [result]);
  return [result, () => setRound(round + 1)];
};
