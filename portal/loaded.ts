import { useEffect, useState } from 'preact/hooks';
import { call, type Result } from './api.js';

/** What a path of the API shows. Undefined: it is not there yet. `reload` asks again. */
export const useLoaded = <T>(path: string): readonly [Result<T> | undefined, () => void] => {
  const [result, setResult] = useState<Result<T>>();
  const [round, setRound] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    void call<T>(path, { signal: abort.signal }).then((found) => {
      if (!abort.signal.aborted) setResult(found);
    });
    return () => abort.abort();
  }, [path, round]);
  return [result, () => setRound(round + 1)];
};
